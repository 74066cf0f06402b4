"""The self-test of classifiers: log-probabilities of the labels of a fixed text."""

from __future__ import annotations

from typing import Any

from heedful.data.batch import pad
from heedful.data.labels import LabelBatch
from heedful.models import Classifier
from heedful.tasks.base import SelfTest
from heedful.tasks.classify.assets import ClassifierAssets
from heedful.tasks.text_self_test import encode_line, sample_line

N_LABELS = 8


def make_input(assets: ClassifierAssets) -> dict[str, Any]:
    """Return a text, and the first labels."""
    return {"text": sample_line(assets.source), "labels": assets.labels.names[:N_LABELS]}


def outputs(model: Classifier, assets: ClassifierAssets, value: Any) -> list[float]:
    """Return the log-probabilities of the labels."""
    logits = model(LabelBatch(pad([encode_line(assets.source, value["text"])]))).logits[0]
    logp = logits.float().log_softmax(dim=-1).tolist()
    return [logp[assets.labels.index(str(name))] for name in value["labels"][:N_LABELS]]


SELF_TEST = SelfTest(make_input, outputs)

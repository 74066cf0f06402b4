"""Run a classifier over many texts, in batches of similar length."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from heedful.attention import NO_HOOKS, Hooks
from heedful.data.batch import pad
from heedful.data.labels import LabelBatch
from heedful.models import Classifier
from heedful.models.classifier import ClassifierOutput
from heedful.parallel import run_in_threads

BATCH_TEXTS = 200
OnBatch = Callable[[Sequence[int], ClassifierOutput], None]  # receives the rows of a batch and its output


def run_classifier(
    model: Classifier,
    ids: Sequence[Sequence[int]],
    on_batch: OnBatch,
    hooks: Hooks = NO_HOOKS,
    threads: int = 1,
) -> None:
    """Classify texts in batches of similar length, and pass each batch's output on."""
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))

    def run_batch(first: int) -> None:
        rows = order[first : first + BATCH_TEXTS]
        with torch.inference_mode():  # is local to a thread
            on_batch(rows, model(LabelBatch(pad([ids[row] for row in rows])), hooks))

    run_in_threads(run_batch, range(0, len(order), BATCH_TEXTS), threads)


def label_probabilities(model: Classifier, ids: Sequence[Sequence[int]], threads: int = 1) -> Tensor:
    """Return the probability of every label of every text: (text, label)."""
    probabilities = torch.zeros(len(ids), model.output.out_features)

    def collect(rows: Sequence[int], output: ClassifierOutput) -> None:
        probabilities[list(rows)] = output.logits.float().softmax(dim=-1).cpu()

    run_classifier(model, ids, collect, threads=threads)
    return probabilities

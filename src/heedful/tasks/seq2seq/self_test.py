"""The self-test of sequence-to-sequence models: log-probabilities of a fixed target."""

from __future__ import annotations

from typing import Any

from heedful.data.batch import TextBatch, pad
from heedful.data.tokenizer import START
from heedful.models import Seq2Seq
from heedful.tasks.base import SelfTest
from heedful.tasks.seq2seq.assets import Seq2SeqAssets
from heedful.tasks.text_self_test import encode_line, sample_line, token_logp


def make_input(assets: Seq2SeqAssets) -> dict[str, str]:
    """Return a line of each side."""
    return {"source": sample_line(assets.source), "target": sample_line(assets.target)}


def outputs(model: Seq2Seq, assets: Seq2SeqAssets, lines: Any) -> list[float]:
    """Return the log-probability of each target token."""
    target = encode_line(assets.target, lines["target"])
    batch = TextBatch(pad([encode_line(assets.source, lines["source"])]), pad([[START, *target]]))
    return token_logp(model(batch).logits[0], target)


SELF_TEST = SelfTest(make_input, outputs)

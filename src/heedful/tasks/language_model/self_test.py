"""The self-test of language models: surprisals of a fixed line."""

from __future__ import annotations

from typing import Any

from heedful.data.text import sentence_batch
from heedful.data.tokenizer import START
from heedful.models import LanguageModel
from heedful.tasks.base import SelfTest
from heedful.tasks.language_model.assets import LanguageModelAssets
from heedful.tasks.language_model.score import score_batch
from heedful.tasks.text_self_test import encode_line, sample_line


def make_input(assets: LanguageModelAssets) -> str:
    """Return a line."""
    return sample_line(assets.text)


def outputs(model: LanguageModel, assets: LanguageModelAssets, line: Any) -> list[float]:
    """Return -log p of each token."""
    surprisal = score_batch(model, sentence_batch([encode_line(assets.text, line)], START)).surprisal
    return [float(number) for number in surprisal]


SELF_TEST = SelfTest(make_input, outputs)

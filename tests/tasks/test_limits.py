"""Input lines that are too long for a model."""

from __future__ import annotations

import pytest

import small_models
from heedful.config import DataConfig, Recipe, TokenizerConfig, WorldConfig
from heedful.data.tokenizer import Tokenizer
from heedful.errors import DataError
from heedful.tasks.limits import MIN_LIMIT, inference_limits, limit_lines

TOKENIZER = Tokenizer.train(["a b c d e f g h"], TokenizerConfig())


def test_long_lines_are_cut_with_a_warning_and_others_stay() -> None:
    messages: list[str] = []
    lines = ["a b", "a b c d e f", "", "h g"]
    assert limit_lines(lines, TOKENIZER, 4, log=messages.append) == ["a b", "a b c d", "", "h g"]
    assert messages == ['line 2 ("a b c d e f…") has 6 tokens, but the model reads at most 4: cut to the first 4']


def test_long_lines_can_be_skipped_or_refused() -> None:
    messages: list[str] = []
    lines = ["a b c d e f", "h g"]
    assert limit_lines(lines, TOKENIZER, 4, "skip", first_line=11, log=messages.append) == ["", "h g"]
    assert messages[0].startswith("line 11 ")
    assert messages[0].endswith("skipped")
    with pytest.raises(DataError, match=r"line 1 .* --on-too-long cut or skip processes the other lines"):
        limit_lines(lines, TOKENIZER, 4, "error")


def test_models_read_more_than_they_were_trained_on_unless_positions_are_a_table() -> None:
    free = Recipe(data=DataConfig(world=WorldConfig(), max_source=20))
    table = small_models.small_preset("transformer", encoder__positions="learned", encoder__max_positions=50)
    limited = Recipe(data=DataConfig(world=WorldConfig()), model=table)
    assert inference_limits([free]).max_source == MIN_LIMIT
    assert inference_limits([limited]).max_source == 49, "one position is the end token's"
    assert inference_limits([free, limited]).max_source == 49, "the smallest limit of an ensemble"

"""Input lines that are too long for a model."""

from __future__ import annotations

import pytest

import small_models
from heedful.config import DataConfig, Recipe, TokenizerConfig, WorldConfig
from heedful.data.tokenizer import Tokenizer
from heedful.errors import DataError
from heedful.tasks.limits import CHARACTERS_PER_TOKEN, MIN_LIMIT, inference_limits, limit_lines

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


@pytest.mark.parametrize("kind", ["word", "character", "bpe"])
def test_only_the_beginning_of_a_far_too_long_line_is_tokenized(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of 20 MB took 55 seconds."""
    tokenizer = Tokenizer.train(["a b c d e f g h"], TokenizerConfig.model_validate({"kind": kind, "vocab_size": 300}))
    longest: list[int] = []
    encode = Tokenizer.encode

    def measure(self: Tokenizer, line: str) -> list[int]:
        longest.append(len(line))
        return encode(self, line)

    monkeypatch.setattr(Tokenizer, "encode", measure)
    for line in ("a b c d " * 100_000, "abcd" * 100_000 if kind != "word" else "a " * 100_000):
        messages: list[str] = []
        (cut,) = limit_lines([line], tokenizer, 20, log=messages.append)
        assert max(longest) <= 20 * CHARACTERS_PER_TOKEN
        assert cut == tokenizer.truncate(line[:1_000], 20)
        assert "tokens, but the model reads at most 20" in messages[0]
        assert " has more than " in messages[0]


def test_models_read_more_than_they_were_trained_on_unless_positions_are_a_table() -> None:
    free = Recipe(data=DataConfig(world=WorldConfig(), max_source=20))
    table = small_models.small_preset("transformer", encoder__positions="learned", encoder__max_positions=50)
    limited = Recipe(data=DataConfig(world=WorldConfig()), model=table)
    assert inference_limits([free]).max_source == MIN_LIMIT
    assert inference_limits([limited]).max_source == 49, "one position is the end token's"
    assert inference_limits([free, limited]).max_source == 49, "the smallest limit of an ensemble"

"""BPE-dropout: the same text in other pieces, reproducibly."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.config import TokenizerConfig
from heedful.data.batch import Encoded
from heedful.data.pieces import WAYS, Cutter, Cutters
from heedful.data.tokenizer import END, Tokenizer

LINES = ["the lower tower, newer than the lowest", "a newer lower flower grows lower"] * 20
TOKENIZER = Tokenizer.learn(LINES, TokenizerConfig(kind="bpe", size=300))


def test_without_dropout_it_cuts_as_the_library_does() -> None:
    cutter = Cutter(TOKENIZER, 0.0, seed=1)
    for line in LINES[:2]:
        ids = TOKENIZER.encode(line)
        assert cutter.cut(ids, Random(1)) == ids


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=30), st.floats(0.0, 0.9))
def test_the_text_stays_the_same(text: str, dropout: float) -> None:
    ids = TOKENIZER.encode(text)
    cut = Cutter(TOKENIZER, dropout, seed=3).cut(ids, Random(5))
    assert TOKENIZER.decode(cut) == TOKENIZER.decode(ids)
    assert cut[-1] == END


def test_words_are_cut_in_several_ways_and_the_same_seed_cuts_alike() -> None:
    ids = TOKENIZER.encode("the lower tower")
    cutter = Cutter(TOKENIZER, 0.3, seed=1)
    several = {tuple(cutter.cut(ids, Random(i))) for i in range(20)}
    assert len(several) > 3
    again = Cutter(TOKENIZER, 0.3, seed=1)
    again.cut(TOKENIZER.encode("lower"), Random(9))  # met in another order
    assert [again.cut(ids, Random(i)) for i in range(20)] == [cutter.cut(ids, Random(i)) for i in range(20)]
    assert len(cutter.ways(tuple(TOKENIZER.encode("lower")[:-1]))) == WAYS


def test_more_dropout_more_pieces() -> None:
    ids = TOKENIZER.encode(LINES[0])

    def mean(dropout: float) -> float:
        cutter = Cutter(TOKENIZER, dropout, seed=1)
        return sum(len(cutter.cut(ids, Random(i))) for i in range(20)) / 20

    assert len(ids) == mean(0.0) < mean(0.1) < mean(0.5)


def test_one_vocabulary_is_cut_by_one() -> None:
    both = Cutters(TOKENIZER, TOKENIZER, 0.1, 1)
    assert both.source is both.target
    ids = TOKENIZER.encode("lower")
    made = both.example(Encoded(ids, ids), Random(1))
    assert TOKENIZER.decode(made.source) == TOKENIZER.decode(made.target) == "lower"


def test_only_pieces_that_are_joined_can_be_left_apart() -> None:
    with pytest.raises(ValueError, match=r'dropout = 0.1: only kind = "bpe"'):
        TokenizerConfig(kind="word", dropout=0.1)

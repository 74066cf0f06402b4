"""BPE-dropout: the same text in other subwords, reproducibly."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.config import TokenizerConfig
from heedful.data.batch import EncodedPair
from heedful.data.bpe_dropout import N_SEGMENTATIONS, BpeDropout, SegmentationSampler
from heedful.data.tokenizer import END, Tokenizer

LINES = ["the lower tower, newer than the lowest", "a newer lower flower grows lower"] * 20
TOKENIZER = Tokenizer.train(LINES, TokenizerConfig(kind="bpe", vocab_size=300))


def test_without_dropout_the_segmentation_is_that_of_the_library() -> None:
    sampler = SegmentationSampler(TOKENIZER, 0.0, seed=1)
    for line in LINES[:2]:
        ids = TOKENIZER.encode(line)
        assert sampler.resample(ids, Random(1)) == ids


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=30), st.floats(0.0, 0.9))
def test_the_text_stays_the_same(text: str, dropout: float) -> None:
    ids = TOKENIZER.encode(text)
    resampled = SegmentationSampler(TOKENIZER, dropout, seed=3).resample(ids, Random(5))
    assert TOKENIZER.decode(resampled) == TOKENIZER.decode(ids)
    assert resampled[-1] == END


def test_words_have_several_segmentations_that_follow_from_the_seed() -> None:
    ids = TOKENIZER.encode("the lower tower")
    sampler = SegmentationSampler(TOKENIZER, 0.3, seed=1)
    variants = {tuple(sampler.resample(ids, Random(i))) for i in range(20)}
    assert len(variants) > 3
    again = SegmentationSampler(TOKENIZER, 0.3, seed=1)
    again.resample(TOKENIZER.encode("lower"), Random(9))  # words in another order
    assert [again.resample(ids, Random(i)) for i in range(20)] == [sampler.resample(ids, Random(i)) for i in range(20)]
    assert len(sampler.segmentations(tuple(TOKENIZER.encode("lower")[:-1]))) == N_SEGMENTATIONS


def test_more_dropout_gives_more_subwords() -> None:
    ids = TOKENIZER.encode(LINES[0])

    def mean_length(dropout: float) -> float:
        sampler = SegmentationSampler(TOKENIZER, dropout, seed=1)
        return sum(len(sampler.resample(ids, Random(i))) for i in range(20)) / 20

    assert len(ids) == mean_length(0.0) < mean_length(0.1) < mean_length(0.5)


def test_a_shared_vocabulary_has_one_sampler() -> None:
    both = BpeDropout(TOKENIZER, TOKENIZER, 0.1, 1)
    assert both.source is both.target
    ids = TOKENIZER.encode("lower")
    resampled = both.resample(EncodedPair(ids, ids), Random(1))
    assert TOKENIZER.decode(resampled.source) == TOKENIZER.decode(resampled.target) == "lower"


def test_bpe_dropout_needs_bpe() -> None:
    with pytest.raises(ValueError, match=r'dropout = 0.1: needs kind = "bpe"'):
        TokenizerConfig(kind="word", bpe_dropout=0.1)

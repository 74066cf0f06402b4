"""Sampling from a distribution that is known: temperature, top-k, top-p, and several draws per sentence."""

from __future__ import annotations

from typing import Any

import pytest

from decoding.markov_model import A, B, C, D, MarkovModel
from heedful.config import DecodingOptions
from heedful.data.batch import TextBatch, pad
from heedful.data.tokenizer import END, START
from heedful.decoding import search

MODEL = MarkovModel({START: {A: 0.5, B: 0.3, C: 0.15, D: 0.05}})


def first_tokens(**options: Any) -> set[int]:
    """Return every first token of 2,000 samples."""
    batch = TextBatch(pad([[END]] * 2000))
    hypotheses = search(MODEL, batch, DecodingOptions(method="sample", max_length=1, **options)).hypotheses
    return {hypothesis.tokens[0] for (hypothesis,) in hypotheses}


@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        ({}, {A, B, C, D}),
        ({"top_k": 1}, {A}),
        ({"top_k": 2}, {A, B}),
        ({"top_k": 3}, {A, B, C}),
        ({"top_k": 99}, {A, B, C, D}),
        ({"top_p": 0.45}, {A}),
        ({"top_p": 0.6}, {A, B}),  # the token that crosses the limit is kept
        ({"top_p": 0.9}, {A, B, C}),
        ({"top_p": 0.6, "temperature": 0.5}, {A}),  # 0.68 after the temperature, which comes first
        ({"top_p": 0.6, "top_k": 2}, {A}),  # 0.63 among the two that remain
    ],
)
def test_samples_are_drawn_from_the_tokens_that_remain(options: dict[str, Any], tokens: set[int]) -> None:
    assert first_tokens(**options) == tokens


def test_several_samples_are_ranked_by_their_probability() -> None:
    options = DecodingOptions(method="sample", n_best=12, max_length=2)
    for hypotheses in search(MODEL, TextBatch(pad([[END]] * 5)), options).hypotheses:
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert len(set(scores)) > 1
        assert scores == sorted(scores, reverse=True)

"""Beam search on models whose best outputs can be counted by hand."""

from __future__ import annotations

import math

import pytest

from decoding.markov_model import A, B, C, MarkovModel
from heedful.config import DecodingOptions
from heedful.data.batch import TextBatch, pad
from heedful.data.tokenizer import END, START
from heedful.decoding import Hypothesis, search


def beam_search(model: MarkovModel, beam: int, n_best: int, max_length: int = 9) -> list[Hypothesis]:
    """Return the n best outputs of one sentence, without a length penalty."""
    options = DecodingOptions(method="beam", beam=beam, n_best=n_best, length_penalty=0.0, max_length=max_length)
    return search(model, TextBatch(pad([[END]])), options).hypotheses[0]


def test_search_goes_on_until_nothing_can_replace_the_worst_output_to_return() -> None:
    """After two steps "" (0.5) and "A" (0.03) have ended, but "A C" (0.27) is still to come."""
    model = MarkovModel({START: {END: 0.5, A: 0.3, B: 0.2}, A: {END: 0.1, C: 0.9}})
    best = beam_search(model, beam=3, n_best=2)
    assert [h.tokens for h in best] == [(END,), (A, C, END)]
    assert [h.score for h in best] == pytest.approx([math.log(0.5), math.log(0.27)])


def test_outputs_that_have_not_ended_are_returned_best_first() -> None:
    model = MarkovModel({START: {A: 0.6, B: 0.4}, A: {A: 1.0}, B: {B: 1.0}})
    best = beam_search(model, beam=2, n_best=2, max_length=3)
    assert [h.tokens for h in best] == [(A, A, A), (B, B, B)]
    assert not any(h.finished for h in best)


def test_an_output_that_has_ended_comes_before_a_likelier_one_that_has_not() -> None:
    model = MarkovModel({START: {END: 0.2, A: 0.8}, A: {A: 1.0}})
    best = beam_search(model, beam=2, n_best=2, max_length=3)
    assert [h.tokens for h in best] == [(END,), (A, A, A)]
    assert [h.finished for h in best] == [True, False]


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_a_prefix_stays_with_its_sentence_when_others_have_ended(method: str) -> None:
    model = MarkovModel({START: {A: 0.6, B: 0.4}, A: {A: 0.5, B: 0.1, END: 0.4}})
    options = DecodingOptions.model_validate({"method": method, "beam": 2, "max_length": 4})
    prefix = pad([[B, END], [A, A, B]])
    hypotheses = search(model, TextBatch(pad([[END], [A, END]])), options, prefix=prefix).hypotheses
    assert [best[0].tokens for best in hypotheses] == [(B, END), (A, A, B, END)]

"""Perplexity against plain sums, by position, and as the metric that compares two language models."""

from __future__ import annotations

import math

import numpy as np
import pytest

from heedful.errors import DataError
from heedful.metrics import bits_per_character, compare_states, perplexity, perplexity_by_position
from heedful.metrics.surprisal import PERPLEXITY

RNG = np.random.default_rng(1)
LINES = [RNG.exponential(3.0, size=n) for n in RNG.integers(1, 60, size=80)]


def test_perplexity_is_over_all_tokens_not_a_mean_of_lines() -> None:
    state = PERPLEXITY.state(LINES, "sentences")
    total = sum(float(value) for line in LINES for value in line)
    count = sum(len(line) for line in LINES)
    assert state.metric().value == pytest.approx(math.exp(total / count), rel=1e-12)
    assert state.signature == f"log:e|tokens:{count}|end:counted|protocol:sentences"
    assert not state.metric().higher_is_better
    with pytest.raises(DataError):
        PERPLEXITY.state([], "sentences")


def test_bins_contain_every_token_once() -> None:
    bins = perplexity_by_position(LINES)
    assert sum(b.tokens for b in bins) == sum(map(len, LINES))
    for b in bins:
        inside = [
            float(value)
            for line in LINES
            for at, value in enumerate(line, 1)
            if b.low <= at and (b.high is None or at <= b.high)
        ]
        assert b.tokens == len(inside)
        assert b.perplexity == pytest.approx(math.exp(sum(inside) / len(inside)), rel=1e-12)


def test_empty_bins_are_left_out() -> None:
    assert [(p.low, p.high) for p in perplexity_by_position([np.ones(2)])] == [(1, 1), (2, 2)]


def test_bits_count_the_end_of_a_line_as_a_character() -> None:
    metric = bits_per_character([np.full(3, math.log(2)), np.full(1, math.log(2))], ["ab", ""], "sentences")
    assert metric.value == pytest.approx(4 / 4)
    assert "characters:4" in metric.signature


def test_the_better_model_wins_and_a_model_does_not_beat_itself() -> None:
    worse = [line + RNG.normal(0.05, 0.3, size=len(line)).clip(-0.2) for line in LINES]
    better, other = (PERPLEXITY.state(lines, "sentences") for lines in (LINES, worse))
    comparison = compare_states(better, other, samples=300)
    assert comparison.difference < 0
    assert comparison.high < 0
    assert comparison.p < 0.05
    assert comparison.wins > 0.97
    same = compare_states(better, better, samples=50)
    assert (same.difference, same.p, same.wins) == (0.0, 1.0, 0.0)


def test_perplexity_has_the_value_computed_by_hand() -> None:
    metric = perplexity(7 * math.log(1 / 5) + 3 * math.log(1 / 2), 10)
    assert metric.value == pytest.approx(5**0.7 * 2**0.3)
    assert not metric.higher_is_better
    assert "tokens:10" in metric.signature
    assert perplexity(0.0, 3).value == 1
    assert perplexity(-1e6, 10).value == perplexity(-math.inf, 10).value == math.inf
    assert math.isnan(perplexity(math.nan, 10).value)  # a diverged model is visible


def test_impossible_log_probabilities_are_an_error() -> None:
    with pytest.raises(DataError, match="0 tokens"):
        perplexity(-1.0, 0)
    with pytest.raises(DataError, match="a loss has the other sign"):
        perplexity(23.5, 10)
    assert perplexity(1e-9, 10).value == pytest.approx(1)  # rounding is no error

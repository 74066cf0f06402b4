"""Perplexity as a tally: against plain sums, and as what two readers are compared by."""

from __future__ import annotations

import math

import numpy as np
import pytest

from heedful.errors import DataError
from heedful.evaluation import bits_per_character, by_position, compared, perplexity_tally

RNG = np.random.default_rng(1)
LINES = [RNG.exponential(3.0, size=n) for n in RNG.integers(1, 60, size=80)]


def test_perplexity_is_over_all_tokens_not_a_mean_of_lines() -> None:
    tally = perplexity_tally(LINES, "sentences")
    total = sum(float(value) for line in LINES for value in line)
    count = sum(len(line) for line in LINES)
    assert tally.metric().value == pytest.approx(math.exp(total / count), rel=1e-12)
    assert tally.signature == f"log:e|tokens:{count}|end:counted|protocol:sentences"
    assert not tally.metric().higher_is_better
    with pytest.raises(DataError):
        perplexity_tally([], "sentences")


def test_places_hold_every_token_once() -> None:
    places = by_position(LINES)
    assert sum(place.tokens for place in places) == sum(map(len, LINES))
    for place in places:
        inside = [
            float(value)
            for line in LINES
            for at, value in enumerate(line, 1)
            if place.low <= at and (place.high is None or at <= place.high)
        ]
        assert place.tokens == len(inside)
        assert place.perplexity == pytest.approx(math.exp(sum(inside) / len(inside)), rel=1e-12)


def test_places_nothing_falls_in_are_left_out() -> None:
    assert [(p.low, p.high) for p in by_position([np.ones(2)])] == [(1, 1), (2, 2)]


def test_bits_count_the_end_of_a_line_as_a_character() -> None:
    metric = bits_per_character([np.full(3, math.log(2)), np.full(1, math.log(2))], ["ab", ""], "sentences")
    assert metric.value == pytest.approx(4 / 4)
    assert "characters:4" in metric.signature


def test_the_better_reader_wins_and_the_same_one_does_not() -> None:
    worse = [line + RNG.normal(0.05, 0.3, size=len(line)).clip(-0.2) for line in LINES]
    better, other = (perplexity_tally(lines, "sentences") for lines in (LINES, worse))
    found = compared((better, other), samples=300)
    assert found.difference < 0
    assert found.high < 0
    assert found.p < 0.05
    assert found.wins > 0.97
    same = compared((better, better), samples=50)
    assert (same.difference, same.p, same.wins) == (0.0, 1.0, 0.0)

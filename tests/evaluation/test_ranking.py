"""Ranks, hit rate and NDCG against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import DataError
from heedful.evaluation.ranking import ranking, ranking_tally, ranks, wanted
from heedful.evaluation.significance import compared

SCORE = st.integers(-3, 3).map(float)


@given(st.lists(st.lists(SCORE, min_size=1, max_size=14), min_size=1, max_size=8), st.integers(1, 12))
def test_figures_are_those_of_the_definition(rows: list[list[float]], cut: int) -> None:
    found = ranks(np.concatenate([np.array(row) for row in rows]), np.array([len(row) for row in rows]))
    for ties in ("", ":ties-for"):
        hits, gains = [], []
        for own, *others in rows:
            place = sum(o > own or (not ties and o == own) for o in others)
            hits.append(float(place < cut))
            gains.append(math.log(2) / math.log(place + 2) if place < cut else 0.0)
        assert ranking(f"hr@{cut}{ties}", found, "").value == pytest.approx(100 * np.mean(hits))
        assert ranking(f"ndcg@{cut}{ties}", found, "").value == pytest.approx(100 * np.mean(gains))


def test_a_score_that_is_no_number_is_no_hit() -> None:
    for scores in ([math.nan, 0.0], [0.0, math.nan]):
        found = ranks(np.array(scores), np.array([2]))
        assert ranking("hr@1:ties-for", found, "").value == 0.0


def test_the_signature_says_how_it_was_measured() -> None:
    found = ranks(np.array([1.0, 0.0, 1.0]), np.array([3]))
    assert ranking("hr@10", found, "2 given").signature == "among:2 given|ties:against|users:1|percent"
    assert "ties:for" in ranking("hr@10:ties-for", found, "2 given").signature


@pytest.mark.parametrize("name", ["hr", "hr@0", "mrr@10", "hr@10:tiesfor", "bleu"])
def test_names_that_are_no_metric(name: str) -> None:
    with pytest.raises(DataError, match="no such metric of a recommender; known: hr@K or ndcg@K"):
        wanted(name)


def test_two_models_are_compared_over_the_same_users() -> None:
    sizes = np.full(60, 2)
    good = ranking_tally("hr@1", ranks(np.tile([1.0, 0.0], 60), sizes), "")
    bad = ranking_tally("hr@1", ranks(np.tile([0.0, 1.0], 60), sizes), "")
    found = compared((good, bad), samples=200)
    assert found.difference == 100.0
    assert found.p < 0.05

"""Ranks, hit rate and NDCG against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import DataError
from heedful.metrics.ranking import compute_ranks, parse_ranking_metric, ranking_metric, ranking_state
from heedful.metrics.significance import compare_states

SCORE = st.integers(-3, 3).map(float)


@given(st.lists(st.lists(SCORE, min_size=1, max_size=14), min_size=1, max_size=8), st.integers(1, 12))
def test_metrics_equal_their_definitions(rows: list[list[float]], cut: int) -> None:
    ranks = compute_ranks(np.concatenate([np.array(row) for row in rows]), np.array([len(row) for row in rows]))
    for ties in ("", ":ties-for"):
        hits, gains = [], []
        for own, *others in rows:
            place = sum(o > own or (not ties and o == own) for o in others)
            hits.append(float(place < cut))
            gains.append(math.log(2) / math.log(place + 2) if place < cut else 0.0)
        assert ranking_metric(f"hr@{cut}{ties}", ranks, "").value == pytest.approx(100 * np.mean(hits))
        assert ranking_metric(f"ndcg@{cut}{ties}", ranks, "").value == pytest.approx(100 * np.mean(gains))


def test_a_nan_score_is_no_hit() -> None:
    for scores in ([math.nan, 0.0], [0.0, math.nan]):
        ranks = compute_ranks(np.array(scores), np.array([2]))
        assert ranking_metric("hr@1:ties-for", ranks, "").value == 0.0


def test_the_signature_says_how_items_were_ranked() -> None:
    ranks = compute_ranks(np.array([1.0, 0.0, 1.0]), np.array([3]))
    assert ranking_metric("hr@10", ranks, "2 given").signature == "among:2 given|ties:against|users:1|percent"
    assert "ties:for" in ranking_metric("hr@10:ties-for", ranks, "2 given").signature


@pytest.mark.parametrize("name", ["hr", "hr@0", "mrr@10", "hr@10:tiesfor", "bleu"])
def test_unknown_ranking_metrics_are_an_error(name: str) -> None:
    with pytest.raises(DataError, match="no such ranking metric; known: hr@K or ndcg@K"):
        parse_ranking_metric(name)


def test_two_models_are_compared_over_the_same_users() -> None:
    sizes = np.full(60, 2)
    good = ranking_state("hr@1", compute_ranks(np.tile([1.0, 0.0], 60), sizes), "")
    bad = ranking_state("hr@1", compute_ranks(np.tile([0.0, 1.0], 60), sizes), "")
    ranks = compare_states(good, bad, samples=200)
    assert ranks.difference == 100.0
    assert ranks.p < 0.05

"""Hit rate and NDCG of held-out items, with ties counted against the model or for it."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError
from heedful.metrics.state import Metric, MetricSpec, MetricState, percent

DEFAULT_METRICS = ("hr@10", "ndcg@10")
NAME_FORMS = "hr@K or ndcg@K, with :all (ranked among all items) and :ties-for (ties count for the model)"
_NAME = re.compile(r"(hr|ndcg)@([1-9]\d*)((?::all|:ties-for)*)")


class Ranks(NamedTuple):
    """For each held-out item, how many other items have a higher score, and how many the same score."""

    above: NDArray[np.int64]
    tied: NDArray[np.int64]


class RankingMetric(NamedTuple):
    """A parsed metric name."""

    kind: str
    k: int
    all_items: bool  # ranked among all items
    ties_for: bool  # ties count for the model


def parse_ranking_metric(name: str) -> RankingMetric:
    """Parse a metric name.

    >>> parse_ranking_metric("ndcg@10:all")
    RankingMetric(kind='ndcg', k=10, all_items=True, ties_for=False)
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise DataError(f'"{name}": no such ranking metric; known: {NAME_FORMS}')
    return RankingMetric(match[1], int(match[2]), ":all" in match[3], ":ties-for" in match[3])


def compute_ranks(scores: NDArray[np.floating], sizes: NDArray[np.int64]) -> Ranks:
    """Return the ranks of held-out items; `scores` are grouped by user, the held-out item's first.

    `sizes` are the numbers of scores of each user. A score that is nan ranks above everything.

    >>> compute_ranks(np.array([1.0, 0.0, 1.0, 2.0, 3.0, np.nan]), np.array([3, 3]))
    Ranks(above=array([0, 2]), tied=array([1, 0]))
    """
    starts = np.cumsum(sizes) - sizes
    own = np.repeat(scores[starts], sizes)
    is_other = np.ones(len(scores), bool)
    is_other[starts] = False
    above, tied = ~(scores <= own) & is_other, (scores == own) & is_other
    return Ranks(*(np.add.reduceat(mask.astype(np.int64), starts) for mask in (above, tied)))


def _gains_state(name: str, ranks: Ranks, candidates: str) -> MetricState:
    """Return one row per user: the gain and 1."""
    metric = parse_ranking_metric(name)
    position = ranks.above if metric.ties_for else ranks.above + ranks.tied
    hits = position < metric.k
    gains = hits.astype(np.float64) if metric.kind == "hr" else hits / np.log2(position + 2)
    signature = f"among:{candidates}|ties:{'for' if metric.ties_for else 'against'}|users:{len(hits):,}|percent"
    return MetricState(name, np.stack([gains, np.ones(len(gains))], axis=1), percent, signature)


HIT_RATE = MetricSpec(
    "hr", _gains_state, "users whose held-out item is among the top K", unit="%", parameter="k", takes_text=False
)
NDCG = MetricSpec(
    "ndcg",
    _gains_state,
    "normalized discounted cumulative gain of the held-out item in the top K",
    unit="%",
    parameter="k",
    takes_text=False,
)


def ranking_state(name: str, ranks: Ranks, candidates: str) -> MetricState:
    """Return the gain of each user; `candidates` says what the items were ranked among."""
    spec = HIT_RATE if parse_ranking_metric(name).kind == "hr" else NDCG
    return spec.state(name, ranks, candidates)


def ranking_metric(name: str, ranks: Ranks, candidates: str) -> Metric:
    """Return a ranking metric over all users.

    >>> ranking_metric("hr@1", Ranks(np.array([0, 0, 3]), np.array([0, 1, 0])), "99 given").value
    33.33...
    """
    return ranking_state(name, ranks, candidates).metric()

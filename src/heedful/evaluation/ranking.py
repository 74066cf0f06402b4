"""How high held-out items stand among others: hit rate and NDCG, ties against the model or for it."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError
from heedful.evaluation.tally import Metric, Tally, percent

USUAL = ("hr@10", "ndcg@10")
FORMS = "hr@K or ndcg@K, with :all (ranked among all items) and :ties-for (ties count for the model)"
_NAME = re.compile(r"(hr|ndcg)@([1-9]\d*)((?::all|:ties-for)*)")


class Ranks(NamedTuple):
    """For each held-out item: of the others, how many stand above it, and how many exactly beside it."""

    above: NDArray[np.int64]
    beside: NDArray[np.int64]


class Wanted(NamedTuple):
    """A metric by its name."""

    kind: str
    cut: int
    everything: bool  # ranked among all items
    kindly: bool  # ties count for the model


def wanted(name: str) -> Wanted:
    """
    >>> wanted("ndcg@10:all")
    Wanted(kind='ndcg', cut=10, everything=True, kindly=False)
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise DataError(f'"{name}": no such metric of a recommender; known: {FORMS}')
    return Wanted(found[1], int(found[2]), ":all" in found[3], ":ties-for" in found[3])


def ranks(scores: NDArray[np.floating], sizes: NDArray[np.int64]) -> Ranks:
    """Ranks of held-out items: `scores` go user by user, so many each, the held-out item's first.

    A score that is no number stands above everything.

    >>> ranks(np.array([1.0, 0.0, 1.0, 2.0, 3.0, np.nan]), np.array([3, 3]))
    Ranks(above=array([0, 2]), beside=array([1, 0]))
    """
    starts = np.cumsum(sizes) - sizes
    own = np.repeat(scores[starts], sizes)
    others = np.ones(len(scores), bool)
    others[starts] = False
    above, beside = ~(scores <= own) & others, (scores == own) & others
    return Ranks(*(np.add.reduceat(found.astype(np.int64), starts) for found in (above, beside)))


def ranking_tally(name: str, found: Ranks, among: str) -> Tally:
    """A row for each user: what it got, and 1. `among` says what the item was ranked among."""
    kind, cut, _, kindly = wanted(name)
    place = found.above if kindly else found.above + found.beside
    hit = place < cut
    got = hit.astype(np.float64) if kind == "hr" else hit / np.log2(place + 2)
    signature = f"among:{among}|ties:{'for' if kindly else 'against'}|users:{len(hit):,}|percent"
    return Tally(name, np.stack([got, np.ones(len(got))], axis=1), percent, signature)


def ranking(name: str, found: Ranks, among: str) -> Metric:
    """
    >>> ranking("hr@1", Ranks(np.array([0, 0, 3]), np.array([0, 1, 0])), "99 given").value
    33.33...
    """
    return ranking_tally(name, found, among).metric()

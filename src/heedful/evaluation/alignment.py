"""Alignments against gold: error rate, precision and recall (Och & Ney 2003), and weight on gold words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from heedful.errors import DataError
from heedful.record import Links

Link = tuple[int, int]


class Aligned(NamedTuple):
    """In per cent; counts are summed over the corpus before they are divided."""

    aer: float
    precision: float
    recall: float
    links: int


def alignment_error(found: Sequence[Iterable[Link]], gold: Sequence[Links]) -> Aligned:
    """`1 - (|A & S| + |A & P|) / (|A| + |S|)`: A found, S sure, P possible (sure ones included).

    >>> gold = [Links(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (1, 2)}))]
    >>> alignment_error([{(0, 0), (1, 2)}], gold).aer
    25.0
    """
    if len(found) != len(gold):
        raise DataError(f"{len(found):,} sentences with links, but {len(gold):,} with gold links")
    all_found = in_sure = in_possible = all_sure = 0
    for mine, (sure, possible) in zip(map(set, found), gold, strict=True):
        all_found += len(mine)
        all_sure += len(sure)
        in_sure += len(mine & sure)
        in_possible += len(mine & (sure | possible))
    if not all_found + all_sure:
        raise DataError("there is no link to compare")
    return Aligned(
        aer=100 * (1 - (in_sure + in_possible) / (all_found + all_sure)),
        precision=100 * in_possible / max(1, all_found),
        recall=100 * in_sure / max(1, all_sure),
        links=all_found,
    )


def diagonal(source: int, target: int) -> set[Link]:
    """The links of a model that knows only lengths: a baseline.

    >>> sorted(diagonal(2, 4))
    [(0, 0), (0, 1), (1, 2), (1, 3)]
    """
    if not source:
        return set()
    return {(min(source - 1, int((t + 0.5) * source / target)), t) for t in range(target)}

"""Alignment error rate, precision and recall against gold links (Och & Ney 2003)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from heedful.errors import DataError
from heedful.trace.schema import Links

Link = tuple[int, int]  # source position, target position


class AlignmentScore(NamedTuple):
    """Rates in percent; counts are summed over the corpus before dividing."""

    aer: float
    precision: float
    recall: float
    links: int  # of the alignment that is scored


def score_alignment(alignments: Sequence[Iterable[Link]], gold: Sequence[Links]) -> AlignmentScore:
    """Return AER, `1 - (|A & S| + |A & P|) / (|A| + |S|)`, precision and recall.

    A are the links of the alignment, S the sure gold links, and P the possible ones, S included.

    >>> gold = [Links(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (1, 2)}))]
    >>> score_alignment([{(0, 0), (1, 2)}], gold).aer
    25.0
    """
    if len(alignments) != len(gold):
        raise DataError(f"{len(alignments):,} sentences with links, but {len(gold):,} with gold links")
    n_links = n_in_sure = n_in_possible = n_sure = 0
    for links, (sure, possible) in zip(map(set, alignments), gold, strict=True):
        n_links += len(links)
        n_sure += len(sure)
        n_in_sure += len(links & sure)
        n_in_possible += len(links & (sure | possible))
    if not n_links + n_sure:
        raise DataError("there are no links to compare")
    return AlignmentScore(
        aer=100 * (1 - (n_in_sure + n_in_possible) / (n_links + n_sure)),
        precision=100 * n_in_possible / max(1, n_links),
        recall=100 * n_in_sure / max(1, n_sure),
        links=n_links,
    )


def diagonal_links(source_length: int, target_length: int) -> set[Link]:
    """Return the links along the diagonal, a baseline that knows only the lengths.

    >>> sorted(diagonal_links(2, 4))
    [(0, 0), (0, 1), (1, 2), (1, 3)]
    """
    if not source_length:
        return set()
    last = source_length - 1
    return {(min(last, int((t + 0.5) * source_length / target_length)), t) for t in range(target_length)}

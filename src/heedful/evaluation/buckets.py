"""Where the quality is lost: by the length of the source, and by the place in the sentence."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from heedful.errors import DataError
from heedful.evaluation.table import maker
from heedful.evaluation.tally import Maker, Metric, References, one_each
from heedful.evaluation.words import words


class LengthBucket(NamedTuple):
    """The items whose source has `low` to `high` tokens, both included; an open last bucket has no `high`."""

    low: int
    high: int | None
    items: int
    mean_length: float
    metric: Metric


class Place(NamedTuple):
    """The reference words between two relative places of their sentences, and how many were found."""

    low: float
    high: float
    words: int
    found: float
    recall: float  # percent


def choose_edges(lengths: Sequence[int], buckets: int = 5) -> tuple[int, ...]:
    """Upper bounds of buckets that hold about equally many items each; equal lengths stay together.

    Equal widths would leave a handful of items in the long buckets, and a BLEU of a handful says nothing.

    >>> choose_edges([3, 3, 4, 5, 8, 9, 20, 30], buckets=4)
    (3, 5, 9, 30)
    """
    ordered = sorted(lengths)
    last = [-(-len(ordered) * k // buckets) - 1 for k in range(1, buckets + 1)]
    return tuple(sorted({ordered[index] for index in last if index >= 0}))


def by_length(
    lengths: Sequence[int],
    outputs: Sequence[str],
    references: References,
    *,
    metric: str | Maker = "bleu",
    edges: Sequence[int] | None = None,
) -> list[LengthBucket]:
    """The metric in buckets of the source's length (Bahdanau et al. 2015, figure 2).

    `lengths` are counted by the caller, who knows what a token is. `edges` are the buckets' upper bounds,
    ascending; what is longer than the last goes into an open bucket. A bucket nothing falls in is left out.

    >>> for b in by_length([1, 2, 7], ["a", "b", "c"], ["a", "x", "c"], metric="exact", edges=[5]):
    ...     print(b.low, b.high, b.items, b.mean_length, b.metric.value)
    0 5 2 1.5 50.0
    6 None 1 7.0 100.0
    """
    tally = maker(metric)(outputs, references)
    if len(lengths) != len(outputs):
        raise DataError(f"{len(lengths)} lengths but {len(outputs)} outputs: they must pair up, one by one")
    if min(lengths) < 0:
        raise DataError(f"lengths: {min(lengths)} is below 0")
    bounds = choose_edges(lengths) if edges is None else tuple(edges)
    if not bounds or bounds[0] < 0 or any(low >= high for low, high in pairwise(bounds)):
        raise DataError(f"edges = {list(bounds)}: expected ascending upper bounds, such as [10, 20, 30]")
    members: dict[int, list[int]] = {}
    for item, length in enumerate(lengths):
        members.setdefault(bisect_left(bounds, length), []).append(item)
    return [
        LengthBucket(
            low=bounds[index - 1] + 1 if index else 0,
            high=bounds[index] if index < len(bounds) else None,
            items=len(items),
            mean_length=sum(lengths[item] for item in items) / len(items),
            metric=tally.metric(items),
        )
        for index, items in sorted(members.items())
    ]


def by_place(
    outputs: Sequence[str],
    references: References,
    *,
    parts: int = 5,
    split: Callable[[str], list[str]] = words,
) -> list[Place]:
    """Which part of the sentence gets lost: the recall of reference words by their relative place.

    Word i of n (from 0) stands at (i + 1/2) / n, so that a sentence read backwards falls into the mirrored
    parts. A word that the reference has r times and the output o times is found min(r, o) / r at each of its
    r places: no output word is counted twice, and a half-kept word favours neither the beginning nor the
    end. So the `found` of all parts sum to the clipped matches, the numerator of ROUGE-1's recall.

    The reference's places stand in for the source's, which is fair for languages of like word order. Words
    are taken without punctuation: the full stop that every output ends with would flatter the last part.
    A part that no word falls in is left out.

    >>> for place in by_place(["the dog sleeps"], ["a big dog never sleeps"]):
    ...     print(f"{place.low:.1f} {place.high:.1f} {place.words} {place.recall}")
    0.0 0.2 1 0.0
    0.2 0.4 1 0.0
    0.4 0.6 1 100.0
    0.6 0.8 1 0.0
    0.8 1.0 1 100.0
    """
    if parts < 1:
        raise DataError(f"parts = {parts}: expected at least 1")
    seen, found = [0] * parts, [0.0] * parts
    for output, reference in zip(outputs, one_each("recall by place", outputs, references), strict=True):
        answer = split(reference)
        wanted, written = Counter(answer), Counter(split(output))
        for i, word in enumerate(answer):
            part = (2 * i + 1) * parts // (2 * len(answer))
            seen[part] += 1
            found[part] += min(1.0, written[word] / wanted[word])
    return [
        Place(k / parts, (k + 1) / parts, seen[k], found[k], 100 * found[k] / seen[k])
        for k in range(parts)
        if seen[k]
    ]

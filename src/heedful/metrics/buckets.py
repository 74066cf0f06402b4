"""Metrics by source length, and recall by position in the sentence."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from heedful.errors import DataError
from heedful.metrics.state import Metric, MetricSpec, References, StateFunction, single_references
from heedful.metrics.table import get_metric
from heedful.metrics.words import split_words


class LengthBucket(NamedTuple):
    """The items whose source has `low` to `high` tokens, both included; None: no upper bound."""

    low: int
    high: int | None
    items: int
    mean_length: float
    metric: Metric


class RecallBin(NamedTuple):
    """The reference words between two relative positions of their sentences, and how many the outputs contain."""

    low: float
    high: float
    words: int
    matches: float
    recall: float  # percent


def choose_edges(lengths: Sequence[int], buckets: int = 5) -> tuple[int, ...]:
    """Return upper bounds of buckets with about equally many items; equal lengths stay together.

    Buckets of equal width would leave a handful of items in the long ones, too few for a meaningful BLEU.

    >>> choose_edges([3, 3, 4, 5, 8, 9, 20, 30], buckets=4)
    (3, 5, 9, 30)
    """
    ordered = sorted(lengths)
    last = [-(-len(ordered) * k // buckets) - 1 for k in range(1, buckets + 1)]
    return tuple(sorted({ordered[index] for index in last if index >= 0}))


def metric_by_length(
    lengths: Sequence[int],
    outputs: Sequence[str],
    references: References,
    *,
    metric: str | MetricSpec | StateFunction = "bleu",
    edges: Sequence[int] | None = None,
) -> list[LengthBucket]:
    """Return the metric in buckets of the source length (Bahdanau et al. 2015, figure 2).

    `lengths` are in the caller's unit. `edges` are the buckets' upper bounds, ascending; longer items go into
    a last bucket without an upper bound. Empty buckets are left out.

    >>> for b in metric_by_length([1, 2, 7], ["a", "b", "c"], ["a", "x", "c"], metric="exact", edges=[5]):
    ...     print(b.low, b.high, b.items, b.mean_length, b.metric.value)
    0 5 2 1.5 50.0
    6 None 1 7.0 100.0
    """
    state = get_metric(metric).state(outputs, references)
    if len(lengths) != len(outputs):
        raise DataError(f"{len(lengths)} lengths but {len(outputs)} outputs: expected one length per output")
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
            metric=state.metric(items),
        )
        for index, items in sorted(members.items())
    ]


def recall_by_position(
    outputs: Sequence[str],
    references: References,
    *,
    bins: int = 5,
    split: Callable[[str], list[str]] = split_words,
) -> list[RecallBin]:
    """Return the recall of reference words by their relative position in the sentence.

    Word i of n (from 0) has position (i + 1/2) / n, so that a reversed sentence falls into the mirrored bins. A
    word with r occurrences in the reference and o in the output counts min(r, o) / r matches at each of its r
    positions: no output word counts twice, and a word that is matched in part favors neither the beginning
    nor the end. The `matches` of all bins sum to the clipped matches, the numerator of ROUGE-1 recall.

    Positions are those of the reference, not of the source, which is fair for languages of similar word
    order. Words come without punctuation: the full stop at the end of every output would favor the last bin.
    Bins without words are left out.

    >>> for b in recall_by_position(["the dog sleeps"], ["a big dog never sleeps"]):
    ...     print(f"{b.low:.1f} {b.high:.1f} {b.words} {b.recall}")
    0.0 0.2 1 0.0
    0.2 0.4 1 0.0
    0.4 0.6 1 100.0
    0.6 0.8 1 0.0
    0.8 1.0 1 100.0
    """
    if bins < 1:
        raise DataError(f"bins = {bins}: expected at least 1")
    n_words, matches = [0] * bins, [0.0] * bins
    for output, reference in zip(outputs, single_references("recall by position", outputs, references), strict=True):
        reference_words = split(reference)
        reference_counts, output_counts = Counter(reference_words), Counter(split(output))
        for i, word in enumerate(reference_words):
            index = (2 * i + 1) * bins // (2 * len(reference_words))
            n_words[index] += 1
            matches[index] += min(1.0, output_counts[word] / reference_counts[word])
    return [
        RecallBin(k / bins, (k + 1) / bins, n_words[k], matches[k], 100 * matches[k] / n_words[k])
        for k in range(bins)
        if n_words[k]
    ]

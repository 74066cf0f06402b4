"""Is one system better than another, or was the test set kind to it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError
from heedful.evaluation.table import maker
from heedful.evaluation.tally import Maker, Metric, References, Tally

TIE = 1e-9  # sums in another order differ by less; real differences are far above it


class Comparison(NamedTuple):
    """Two systems on one test set. `difference` is first minus second, in the metric's unit."""

    first: Metric
    second: Metric
    difference: float
    low: float  # of the middle 95% of the resampled differences
    high: float
    p: float  # two-sided
    wins: float  # share of the resamples in which the first is better; ties are nobody's
    samples: int
    seed: int


def paired_bootstrap(
    first: Sequence[str],
    second: Sequence[str],
    references: References,
    *,
    metric: str | Maker = "bleu",
    samples: int = 1000,
    seed: int = 12345,
) -> Comparison:
    """Paired bootstrap resampling (Koehn 2004): both systems on the same items, drawn with replacement.

    `p` is twice the share of resamples in which the better system does not win, so that it says what `low`
    and `high` say: below 0.05 when both are on one side of 0. (One such resample is added, which keeps p
    above 0.) sacrebleu draws the same resamples from the same seed and reads them otherwise: its p is
    one-sided for clear differences, and 1 in 1001 for two systems that are the same.

    A test set of a few items has few resamples to show: trust no p from less than some dozens.

    >>> same = paired_bootstrap(["a", "b"], ["a", "b"], ["a", "c"], metric="exact", samples=100)
    >>> same.difference, same.p, same.wins
    (0.0, 1.0, 0.0)
    """
    return compared(_tallies(first, second, references, metric, samples), samples, seed)


def compared(tallies: tuple[Tally, Tally], samples: int = 1000, seed: int = 12345) -> Comparison:
    """The same of two tallies over the same items."""
    scores = resampled(tallies, samples, seed)
    one, other = (tally.metric() for tally in tallies)
    differences = scores[:, 0] - scores[:, 1]
    low, high = np.quantile(differences, [0.025, 0.975])
    above, below = int((differences > TIE).sum()), int((differences < -TIE).sum())
    return Comparison(
        first=one,
        second=other,
        difference=one.value - other.value,
        low=float(low),
        high=float(high),
        p=min(1.0, 2 * (samples - max(above, below) + 1) / (samples + 1)),
        wins=(above if one.higher_is_better else below) / samples,
        samples=samples,
        seed=seed,
    )


def paired_randomisation(
    first: Sequence[str],
    second: Sequence[str],
    references: References,
    *,
    metric: str | Maker = "bleu",
    samples: int = 1000,
    seed: int = 12345,
) -> float:
    """The two-sided p of paired approximate randomisation (Riezler & Maxwell 2005).

    How often is the difference at least as large when each item's outputs are swapped by a coin's fall? It
    tests "the systems are exchangeable" itself and errs less often than the bootstrap, but has no interval.

    >>> paired_randomisation(["a", "b"], ["a", "b"], ["a", "c"], metric="exact", samples=100)
    1.0
    """
    one, other = _tallies(first, second, references, metric, samples)
    rng = np.random.default_rng(seed)
    totals = one.rows.sum(axis=0), other.rows.sum(axis=0)
    swap = other.rows - one.rows
    observed = abs(one.score(totals[0]) - other.score(totals[1]))
    reached = 0
    for _ in range(samples):
        moved = rng.integers(2, size=len(swap)).astype(np.float64) @ swap
        reached += abs(one.score(totals[0] + moved) - other.score(totals[1] - moved)) >= observed - TIE
    return (reached + 1) / (samples + 1)


def resampled(tallies: Sequence[Tally], samples: int, seed: int) -> NDArray[np.float64]:
    """The scores (sample x system) of all systems on the same items drawn with replacement."""
    rng = np.random.default_rng(seed)
    items = len(tallies[0].rows)
    scores = np.empty((samples, len(tallies)))
    for sample in range(samples):
        times = np.bincount(rng.choice(items, size=items), minlength=items).astype(np.float64)
        scores[sample] = [tally.score(times @ tally.rows) for tally in tallies]
    return scores


def _tallies(
    first: Sequence[str], second: Sequence[str], references: References, metric: str | Maker, samples: int
) -> tuple[Tally, Tally]:
    make = maker(metric)
    if samples < 1:
        raise DataError(f"samples = {samples}: expected at least 1")
    if len(first) != len(second):
        raise DataError(f"{len(first)} outputs of the first system but {len(second)} of the second")
    if len(first) == 1:
        raise DataError("one output a system: resampling it can only give the same again; expected more")
    one, other = make(first, references), make(second, references)
    if one.rows.shape != other.rows.shape:  # classes that only one of them names: both are to know of all
        both = make([*first, *second], [*references, *references])
        half = len(first)
        one = replace(one, rows=both.rows[:half], score=both.score)
        other = replace(other, rows=both.rows[half:], score=both.score)
    return one, other

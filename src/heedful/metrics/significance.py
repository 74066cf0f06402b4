"""Significance tests: is one system better than another, or is the difference due to the test set?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError
from heedful.metrics.state import Metric, MetricSpec, MetricState, References, StateFunction
from heedful.metrics.table import get_metric

TOLERANCE = 1e-9  # smaller differences are due to the order of summation


class Comparison(NamedTuple):
    """Two systems on one test set; `difference` is first minus second, in the metric's unit."""

    first: Metric
    second: Metric
    difference: float
    low: float  # 95 % interval of the resampled differences
    high: float
    p: float  # two-sided
    wins: float  # fraction of the samples in which the first is strictly better
    samples: int
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Return dicts, numbers and strings only, for JSON."""
        return {**self._asdict(), "first": self.first.to_dict(), "second": self.second.to_dict()}


def paired_bootstrap(
    first: Sequence[str],
    second: Sequence[str],
    references: References,
    *,
    metric: str | MetricSpec | StateFunction = "bleu",
    samples: int = 1000,
    seed: int = 12345,
) -> Comparison:
    """Run paired bootstrap resampling (Koehn 2004): both systems on the same items, drawn with replacement.

    `p` is twice the fraction of samples in which the better system does not win, so it agrees with the interval:
    it is below 0.05 when `low` and `high` are on one side of 0. (One such sample is added, which keeps p
    above 0.) sacrebleu draws the same samples from the same seed and computes p differently: one-sided for
    clear differences, and 1 in 1001 for two identical systems.

    With fewer than some dozens of items there are too few different samples to trust p.

    >>> same = paired_bootstrap(["a", "b"], ["a", "b"], ["a", "c"], metric="exact", samples=100)
    >>> same.difference, same.p, same.wins
    (0.0, 1.0, 0.0)
    """
    return compare_states(*_both_states(first, second, references, metric, samples), samples, seed)


def compare_states(first: MetricState, second: MetricState, samples: int = 1000, seed: int = 12345) -> Comparison:
    """Run `paired_bootstrap` on the states of two systems over the same items."""
    scores = resample([first, second], samples, seed)
    first_metric, second_metric = first.metric(), second.metric()
    differences = scores[:, 0] - scores[:, 1]
    low, high = np.quantile(differences, [0.025, 0.975])
    above, below = int((differences > TOLERANCE).sum()), int((differences < -TOLERANCE).sum())
    return Comparison(
        first=first_metric,
        second=second_metric,
        difference=first_metric.value - second_metric.value,
        low=float(low),
        high=float(high),
        p=min(1.0, 2 * (samples - max(above, below) + 1) / (samples + 1)),
        wins=(above if first_metric.higher_is_better else below) / samples,
        samples=samples,
        seed=seed,
    )


def paired_randomization(
    first: Sequence[str],
    second: Sequence[str],
    references: References,
    *,
    metric: str | MetricSpec | StateFunction = "bleu",
    samples: int = 1000,
    seed: int = 12345,
) -> float:
    """Return the two-sided p of paired approximate randomization (Riezler & Maxwell 2005).

    It is the fraction of samples with at least the observed difference when the outputs of each item are swapped
    with probability 1/2. This tests whether the systems are exchangeable, and has fewer false positives than
    the bootstrap, but no interval.

    >>> paired_randomization(["a", "b"], ["a", "b"], ["a", "c"], metric="exact", samples=100)
    1.0
    """
    a, b = _both_states(first, second, references, metric, samples)
    rng = np.random.default_rng(seed)
    total_a, total_b = a.rows.sum(axis=0), b.rows.sum(axis=0)
    swap = b.rows - a.rows
    observed = abs(a.score(total_a) - b.score(total_b))
    n_as_large = 0  # samples with at least the observed difference
    for _ in range(samples):
        swapped = rng.integers(2, size=len(swap)).astype(np.float64) @ swap
        n_as_large += abs(a.score(total_a + swapped) - b.score(total_b - swapped)) >= observed - TOLERANCE
    return (n_as_large + 1) / (samples + 1)


def resample(states: Sequence[MetricState], samples: int, seed: int) -> NDArray[np.float64]:
    """Return the scores (sample x system) of all systems on the same items, drawn with replacement."""
    rng = np.random.default_rng(seed)
    n_items = len(states[0].rows)
    scores = np.empty((samples, len(states)))
    for sample in range(samples):
        counts = np.bincount(rng.choice(n_items, size=n_items), minlength=n_items).astype(np.float64)
        scores[sample] = [state.score(counts @ state.rows) for state in states]
    return scores


def _both_states(
    first: Sequence[str],
    second: Sequence[str],
    references: References,
    metric: str | MetricSpec | StateFunction,
    samples: int,
) -> tuple[MetricState, MetricState]:
    spec = get_metric(metric)
    if samples < 1:
        raise DataError(f"samples = {samples}: expected at least 1")
    if len(first) != len(second):
        raise DataError(f"{len(first)} outputs of the first system but {len(second)} of the second")
    if len(first) == 1:
        raise DataError("one output per system: resampling needs more than one")
    a, b = spec.state(first, references), spec.state(second, references)
    if a.rows.shape != b.rows.shape:  # classes that only one system predicts: both need columns for all
        joint = spec.state([*first, *second], [*references, *references])
        a = replace(a, rows=joint.rows[: len(first)], score=joint.score)
        b = replace(b, rows=joint.rows[len(first) :], score=joint.score)
    return a, b

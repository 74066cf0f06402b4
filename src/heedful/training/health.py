"""Health checks of a training run: pure functions from numbers to a warning sentence, or None.

The loop monitors the loss. A task runs the attention checks during validation, because only the task knows
which attentions should change from step to step (those with placement "uniform" should not).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


class Movement(NamedTuple):
    """Total variation distance between the attention weights of consecutive output steps."""

    largest: float
    mean: float


def measure_movement(weights: Iterable[Array]) -> Movement | None:
    """Measure how far attention moves; each array is (query, key) or (query, head, key).

    Returns None if nothing can move: one query or one key.

    >>> measure_movement([np.array([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]])])
    Movement(largest=0.5, mean=0.25)
    """
    distances = [
        0.5 * np.abs(np.diff(w, axis=0)).sum(axis=-1).ravel() for w in weights if w.shape[0] > 1 and w.shape[-1] > 1
    ]
    if not distances:
        return None
    joined = np.concatenate(distances)
    return Movement(float(joined.max()), float(joined.mean()))


def check_movement(site: str, weights: Iterable[Array], *, min_mean: float = 0.01) -> str | None:
    """Return a warning if the weights of different output steps are equal, or nearly so."""
    movement = measure_movement(weights)
    if movement is None or movement.mean >= min_mean:
        return None
    if movement.largest < 1e-6:
        return (
            f"attention {site} does not move: every output step has the same weights; the decoder's state"
            " does not reach the scores, or they have collapsed"
        )
    return (
        f"attention {site} hardly moves: on average {movement.mean:.2%} of its mass changes position from one"
        " output step to the next"
    )


def measure_end_mass(weights: Sequence[Array], ends: Sequence[int]) -> float | None:
    """Return the mean weight on position `ends[i]` of item i, over all output steps but the last.

    The last output step is excluded, because it writes the end token and may attend to it.

    >>> measure_end_mass([np.array([[0.2, 0.8], [0.4, 0.6], [0.0, 1.0]])], [1])
    0.7
    """
    masses = [
        w[:-1, ..., end].ravel() for w, end in zip(weights, ends, strict=True) if w.shape[0] > 1 and w.shape[-1] > 1
    ]
    return float(np.concatenate(masses).mean()) if masses else None


def check_end_mass(site: str, weights: Sequence[Array], ends: Sequence[int], *, max_mass: float = 0.5) -> str | None:
    """Return a warning if most of the weight is on the source's end token."""
    mass = measure_end_mass(weights, ends)
    if mass is None or mass <= max_mass:
        return None
    return (
        f"attention {site} attends mostly to the end token: it gets {mass:.0%} of the mass on average;"
        " model.attention.read_end = false excludes it"
    )


def attention_warnings(site: str, weights: Sequence[Array], ends: Sequence[int] | None = None) -> list[str]:
    """Return all warnings about a site's weights on some validation items; `ends` are end-token positions."""
    end_warning = check_end_mass(site, weights, ends) if ends is not None else None
    return [warning for warning in (check_movement(site, weights), end_warning) if warning is not None]


def check_loss(recent: float, lowest: float) -> str | None:
    """Return a warning if the recent training loss per token is far above its minimum."""
    if recent <= 2 * lowest + 0.5:
        return None
    return (
        f"the training loss rose to {recent:.2f} per token from a minimum of {lowest:.2f}: training has collapsed;"
        " try a lower training.learning_rate, a lower training.grad_clip or a longer training.warmup_steps"
    )


class LossMonitor:
    """A running mean of the training loss and its minimum; `state` is a list of numbers for checkpoints."""

    WINDOW = 50  # steps of the running mean, and before the first check

    def __init__(self, state: Sequence[float] = ()) -> None:
        self.steps, self.recent, self.lowest, self.warned = state or (0.0, 0.0, math.inf, 0.0)

    def state(self) -> list[float]:
        """Return what the constructor takes."""
        return [self.steps, self.recent, self.lowest, self.warned]

    def update(self, loss: float) -> str | None:
        """Add a step's loss; return a warning when training collapses, once until it recovers."""
        self.steps += 1
        self.recent += (loss - self.recent) / min(self.steps, self.WINDOW)
        if self.steps < self.WINDOW:
            return None
        self.lowest = min(self.lowest, self.recent)
        warning = check_loss(self.recent, self.lowest)
        if warning is None:
            self.warned = 0.0
            return None
        already_warned, self.warned = bool(self.warned), 1.0
        return None if already_warned else warning

"""Is it well? Pure functions from numbers to a sentence, or to None where all is well.

The loop watches the loss; a task calls the others at validation with the weights of a site, since it knows
which attention ought to move (one with placement "uniform" ought not).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


class Movement(NamedTuple):
    """Total variation distance between the weights of neighbouring output steps."""

    largest: float
    mean: float


def movement(weights: Iterable[Array]) -> Movement | None:
    """How far attention moves; each array is (query, key) or (query, head, key). None if nothing can move.

    >>> movement([np.array([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]])])
    Movement(largest=0.5, mean=0.25)
    """
    moves = [
        0.5 * np.abs(np.diff(w, axis=0)).sum(axis=-1).ravel()
        for w in weights
        if w.shape[0] > 1 and w.shape[-1] > 1
    ]
    if not moves:
        return None
    every = np.concatenate(moves)
    return Movement(float(every.max()), float(every.mean()))


def standing_still(site: str, weights: Iterable[Array], *, little: float = 0.01) -> str | None:
    """A sentence if the weights of different output steps are the same, or nearly."""
    moved = movement(weights)
    if moved is None or moved.mean >= little:
        return None
    if moved.largest < 1e-6:
        return (
            f"attention {site} does not move: every output step has the same weights; the decoder's state"
            " does not reach the scores, or they have collapsed"
        )
    return (
        f"attention {site} hardly moves: from one output step to the next {moved.mean:.2%} of its mass"
        " changes place on average"
    )


def end_mass(weights: Sequence[Array], ends: Sequence[int]) -> float | None:
    """The mean mass on position `ends[i]` of item i; the last output step is left out: it may look there.

    >>> end_mass([np.array([[0.2, 0.8], [0.4, 0.6], [0.0, 1.0]])], [1])
    0.7
    """
    masses = [
        w[:-1, ..., end].ravel()
        for w, end in zip(weights, ends, strict=True)
        if w.shape[0] > 1 and w.shape[-1] > 1
    ]
    return float(np.concatenate(masses).mean()) if masses else None


def on_the_end(site: str, weights: Sequence[Array], ends: Sequence[int], *, much: float = 0.5) -> str | None:
    """A sentence if most of the mass falls on the source's end token."""
    mass = end_mass(weights, ends)
    if mass is None or mass <= much:
        return None
    return (
        f"attention {site} falls on the end token: it holds {mass:.0%} of the mass on average; with"
        " model.attention.read_end = false it cannot be read"
    )


def attention_warnings(site: str, weights: Sequence[Array], ends: Sequence[int] | None = None) -> list[str]:
    """What is odd about a site's weights over some validation items; `ends`: where end tokens stand."""
    ending = on_the_end(site, weights, ends) if ends is not None else None
    return [sentence for sentence in (standing_still(site, weights), ending) if sentence is not None]


def collapse(recent: float, lowest: float) -> str | None:
    """A sentence if the training loss (of late, per token) is far above what it had been."""
    if recent <= 2 * lowest + 0.5:
        return None
    return (
        f"the training loss rose to {recent:.2f} a token after having been {lowest:.2f}: training has"
        " collapsed; a lower training.rate, a lower training.clip or a longer training.warmup may help"
    )


class LossWatch:
    """A running mean of the training loss and the least it has been; plain numbers, to be saved."""

    EVERY = 50  # steps that the mean looks back on, and after which it is believed

    def __init__(self, state: Sequence[float] = ()) -> None:
        self.steps, self.recent, self.lowest, self.fallen = state or (0.0, 0.0, math.inf, 0.0)

    def state(self) -> list[float]:
        return [self.steps, self.recent, self.lowest, self.fallen]

    def see(self, loss: float) -> str | None:
        """Take a step's loss in; a sentence when it collapses, once until it has recovered."""
        self.steps += 1
        self.recent += (loss - self.recent) / min(self.steps, self.EVERY)
        if self.steps < self.EVERY:
            return None
        self.lowest = min(self.lowest, self.recent)
        sentence = collapse(self.recent, self.lowest)
        if sentence is None:
            self.fallen = 0.0
            return None
        again, self.fallen = bool(self.fallen), 1.0
        return None if again else sentence

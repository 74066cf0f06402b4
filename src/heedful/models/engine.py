"""Engines: models for use where time counts. A whole step is one call, and matrices are bytes.

Whatever an engine does not know (a watch that edits or asks for scores) goes the way of `to_int8`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Generator, Tensor

from heedful.attention import PLAIN, Look, Watch
from heedful.data.batch import TextBatch
from heedful.layers.state import State, Stepped
from heedful.models.int8 import to_int8
from heedful.models.seq2seq import Seq2Seq
from heedful.models.writer import Next
from heedful.record import Site


class Alone(NamedTuple):
    """One sentence's output, the end token included if it came; weights by site, (step, head, key)."""

    words: list[int]
    logp: list[float]
    looks: Mapping[str, Tensor]


def sentences(rows: int, count: int) -> Int[Tensor, "row"]:
    """Which sentence each row belongs to: rows of a sentence lie side by side."""
    return torch.arange(count).repeat_interleave(rows // count) if count else torch.arange(0)


class Engine:
    """A `Writer` that also gives the likeliest next words outright (`next`), or a whole output (`alone`)."""

    def __init__(self, model: Seq2Seq) -> None:
        self.model = to_int8(model)

    @property
    def sites(self) -> tuple[Site, ...]:
        return self.model.sites

    @property
    def alignment(self) -> str | None:
        return self.model.alignment

    @property
    def first(self) -> int:
        return self.model.first

    def encode(self, batch: TextBatch, watch: Watch = PLAIN) -> tuple[State, Mapping[str, Look]]:
        return self.model.encode(batch, watch)

    def step(self, state: State, last: Int[Tensor, "row"], watch: Watch = PLAIN) -> Stepped:
        return self.model.step(state, last, watch)

    def score(
        self, batch: TextBatch, watch: Watch = PLAIN, sampling: float = 0.0, rng: Generator | None = None
    ) -> Stepped:
        return self.model.score(batch, watch, sampling, rng)

    def alone(self, state: State, most: int, watch: Watch = PLAIN) -> Alone | None:
        """The whole greedy output of a single sentence; None where only the explicit way will do."""
        raise NotImplementedError

    def next(self, state: State, last: Int[Tensor, "row"], best: int, watch: Watch = PLAIN) -> Next | None:
        """The likeliest words of each row; None where only the explicit way will do."""
        raise NotImplementedError

"""The data that attention takes and returns; modules keep no state between calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.errors import ShapeError

Carry = Mapping[str, Tensor]
EMPTY: Mapping[str, Tensor] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Memory:
    """The keys and values of a source, projected once by `prepare`; all beams of a sentence share them.

    `keys` are already projected by the score. `keep` is True where a key may be attended to.
    """

    keys: Float[Tensor, "batch key head inner"]
    values: Float[Tensor, "batch key head width"]
    keep: Bool[Tensor, "batch key"]

    def select(self, sentences: Int[Tensor, "selected"]) -> Memory:
        """Return the memory of these sentences only, when others have finished."""
        return Memory(self.keys[sentences], self.values[sentences], self.keep[sentences])

    def append(self, more: Memory) -> Memory:
        """Return this memory followed by later positions: a key/value cache, or the tape of an LSTMN."""
        return Memory(
            torch.cat([self.keys, more.keys], dim=1),
            torch.cat([self.values, more.values], dim=1),
            torch.cat([self.keep, more.keep], dim=1),
        )


@dataclass(frozen=True, slots=True)
class AttentionOutput:
    """Result of one attention call.

    `context` is `sum_i a_i v_i`, joined over the heads. `weights` are recorded from `Detail.WEIGHTS` on; the
    scores before mask and normalizer, the query and each head's context at `Detail.FULL`. `extras` is what the
    placement and the score report (a center, a sample and its log-probability, the coverage loss).
    `context` is None in what an edit receives and in what fused loops and engines record.
    """

    context: Float[Tensor, "batch query out"] | None = None
    weights: Float[Tensor, "batch query head key"] | None = None
    scores: Float[Tensor, "batch query head key"] | None = None
    extras: Mapping[str, Tensor] = field(default_factory=lambda: EMPTY)
    query: Float[Tensor, "batch query width"] | None = None
    head_contexts: Float[Tensor, "batch query head inner"] | None = None


def check_shape(name: str, shape: tuple[int, ...], owner: str, expected: tuple[int, ...]) -> None:
    """Raise unless a shape equals the one that `owner` needs; -1 in `expected` matches anything."""
    matches = len(shape) == len(expected) and all(e in (-1, s) for s, e in zip(shape, expected, strict=True))
    if not matches:
        sizes = ", ".join("any" if e == -1 else str(e) for e in expected)
        raise ShapeError(f"{name} has shape {tuple(shape)}, but {owner} needs ({sizes})")

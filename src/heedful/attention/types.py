"""The records that every mechanism takes and gives. Nothing is kept on a module between calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.errors import ShapeError

Carry = Mapping[str, Tensor]
OPEN = "open"  # an extra for edits: what each query may read
EMPTY: Mapping[str, Tensor] = MappingProxyType({})


class Detail(IntEnum):
    """How much a look writes down. Only NONE lets a fused kernel run, which never shows its weights."""

    NONE = 0
    WEIGHTS = 1
    FULL = 2


@dataclass(frozen=True, slots=True)
class Memory:
    """What can be read: made once per sentence by `prepare`, held by the caller, never repeated per beam.

    `keys` are already projected by the score. `keep` is True where a key may be read.
    """

    keys: Float[Tensor, "batch key head inner"]
    values: Float[Tensor, "batch key head width"]
    keep: Bool[Tensor, "batch key"]

    def select(self, sentences: Int[Tensor, "kept"]) -> Memory:
        """The memory of these sentences only: finished ones leave the batch."""
        return Memory(self.keys[sentences], self.values[sentences], self.keep[sentences])

    def append(self, more: Memory) -> Memory:
        """This memory with later positions behind it: a key/value cache, or the LSTMN's tape."""
        return Memory(
            torch.cat([self.keys, more.keys], dim=1),
            torch.cat([self.values, more.values], dim=1),
            torch.cat([self.keep, more.keep], dim=1),
        )


@dataclass(frozen=True, slots=True)
class Look:
    """What one look did: the weights used, and at `Detail.FULL` what they were made from and what came of it.

    That is: the scores before mask and normaliser, what asked, and each head's mixture.
    """

    weights: Float[Tensor, "batch query head key"] | None
    scores: Float[Tensor, "batch query head key"] | None = None
    extra: Mapping[str, Tensor] = field(default_factory=lambda: EMPTY)
    query: Float[Tensor, "batch query width"] | None = None
    context: Float[Tensor, "batch query head inner"] | None = None


@dataclass(frozen=True, slots=True)
class Override:
    """Weights to use in place of the mechanism's own. They are taken as they are, never renormalised."""

    weights: Float[Tensor, "batch query head key"]


Edit = Callable[[str, Look, Int[Tensor, "batch query"]], Override | None]


@dataclass(frozen=True, slots=True)
class Watch:
    """How closely to watch, and what to change: one argument that travels through every model.

    `edit(site, own_look, at)` may return other weights; that is how what-if questions and honesty
    tests are put to a model.
    """

    detail: Detail = Detail.NONE
    sites: frozenset[str] | None = None  # None: all of them
    edit: Edit | None = None

    def detail_at(self, site: str) -> Detail:
        return self.detail if self.sites is None or site in self.sites else Detail.NONE


PLAIN = Watch()


def lengths_to_keep(lengths: Int[Tensor, "batch"], count: int | None = None) -> Bool[Tensor, "batch key"]:
    """The mask of right-padded sentences.

    >>> lengths_to_keep(torch.tensor([2, 0]), 3)
    tensor([[ True,  True, False],
            [False, False, False]])
    """
    total = int(lengths.max()) if count is None else count
    return torch.arange(total, device=lengths.device) < lengths[:, None]


def without_last(keep: Bool[Tensor, "batch key"]) -> Bool[Tensor, "batch key"]:
    """`keep` with the last readable position of each sentence closed: the source's end token.

    >>> without_last(torch.tensor([[True, True, False], [True, False, False]]))
    tensor([[ True, False, False],
            [False, False, False]])
    """
    later = keep.flip(-1).cumsum(-1).flip(-1)  # readable positions from here on, this one included
    return keep & (later > 1)


def extent(keep: Bool[Tensor, "batch key"]) -> Int[Tensor, "batch"]:
    """T of the papers: one past the last readable position, 0 where there is none."""
    if keep.shape[-1] == 0:
        return torch.zeros(keep.shape[0], dtype=torch.long, device=keep.device)
    positions = torch.arange(1, keep.shape[-1] + 1, device=keep.device)
    return (keep * positions).amax(dim=-1)


def fits(what: str, found: tuple[int, ...], other: str, wanted: tuple[int, ...]) -> None:
    """Refuse two shapes that do not fit, and name both; -1 in `wanted` fits anything."""
    same = len(found) == len(wanted) and all(w in (-1, f) for f, w in zip(found, wanted, strict=True))
    if not same:
        shown = ", ".join("any" if w == -1 else str(w) for w in wanted)
        raise ShapeError(f"{what} has shape {tuple(found)}, but {other} asks for ({shown})")

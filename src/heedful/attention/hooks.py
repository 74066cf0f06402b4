"""Hooks: what an attention call records, and weights that override its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.attention.types import AttentionOutput, check_shape
from heedful.errors import ShapeError

ALLOWED = "allowed"  # key of `extras` in what an edit receives: which keys each query may attend to
MAX_LISTED = 12  # positions listed in an error


class Detail(IntEnum):
    """How much an attention call records. Torch's fused kernel does not return weights, so it runs only at NONE."""

    NONE = 0
    WEIGHTS = 1
    FULL = 2


@dataclass(frozen=True, slots=True)
class Override:
    """Weights to use instead of the mechanism's own. They are used as they are, never renormalized."""

    weights: Float[Tensor, "batch query head key"]


Edit = Callable[[str, AttentionOutput, Int[Tensor, "batch query"]], Override | None]


@dataclass(frozen=True, slots=True)
class Hooks:
    """What to record and what to override: one argument that every model passes on to its attentions.

    `edit(site, output, positions)` may return weights to use instead of `output.weights`; counterfactuals and
    faithfulness tests are built on it.
    """

    detail: Detail = Detail.NONE
    sites: frozenset[str] | None = None  # sites to record; None: all
    edit: Edit | None = None

    def detail_at(self, site: str) -> Detail:
        """Return how much to record at a site."""
        return self.detail if self.sites is None or site in self.sites else Detail.NONE


NO_HOOKS = Hooks()


def apply_edit(
    edit: Edit,
    site: str,
    output: AttentionOutput,
    positions: Int[Tensor, "batch query"],
    allowed: Bool[Tensor, "batch query #head key"],
) -> Float[Tensor, "batch query head key"]:
    """Return the weights that an edit returns, or the output's own; raise if they are invalid."""
    weights = output.weights
    assert weights is not None
    override = edit(site, output, positions)
    if override is None:
        return weights
    edited = override.weights
    check_shape(f"the edit at {site}", edited.shape, "this call", weights.shape)
    if not bool(torch.isfinite(edited).all()):
        raise ShapeError(f"the edit at {site} contains weights that are not finite")
    if bool(edited.masked_fill(allowed, 0.0).any()):
        forbidden = (edited != 0) & ~allowed
        row = tuple(forbidden.nonzero()[0][:-1])
        allowed_positions = allowed.expand_as(weights)[row].nonzero().flatten().tolist()
        listed = ", ".join(map(str, allowed_positions[:MAX_LISTED]))
        listed += " ..." if len(allowed_positions) > MAX_LISTED else ""
        raise ShapeError(
            f"the edit at {site} puts weight on positions that may not be attended to; allowed: {listed or 'none'}"
        )
    return edited.to(weights.dtype)

"""The base class of placements, and functions that several of them use."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from heedful.attention.normalizers.base import Normalizer
from heedful.config import AttentionConfig
from heedful.errors import ShapeError
from heedful.trace.schema import Mass

Scores = Float[Tensor, "batch query head key"]
Allowed = Bool[Tensor, "batch query #head key"]
PlacementOutput = tuple[Scores, dict[str, Tensor]]


@dataclass(frozen=True, slots=True)
class PlacementContext:
    """The inputs of a placement besides the scores."""

    query: Float[Tensor, "batch query head width"]
    positions: Int[Tensor, "batch query"]  # target position t, from 0
    length: Int[Tensor, "batch"]  # T, the source length without padding
    rng: Generator | None = None


class Placement(nn.Module):
    """Base class of placements: from scores to weights, given the mask and the normalizer."""

    @classmethod
    def from_config(cls, config: AttentionConfig, query_size: int) -> Placement:
        """Build the placement for queries of this size."""
        return cls()

    def mass(self, normalizer_mass: Mass) -> Mass:
        """Return what the weights sum to, given what the normalizer's weights sum to."""
        return normalizer_mass

    def forward(
        self, scores: Scores, allowed: Allowed, normalizer: Normalizer, context: PlacementContext
    ) -> PlacementOutput:
        raise NotImplementedError(f"{type(self).__name__} does not define forward")


def distance(center: Float[Tensor, "batch query head"], count: int) -> Float[Tensor, "batch query head key"]:
    """Return |i - center| for every key i."""
    return (torch.arange(count, device=center.device, dtype=center.dtype) - center[..., None]).abs()


def check_window(window: int) -> int:
    """Return the window, or raise if it is empty."""
    if window < 1:
        raise ShapeError(f"a local window needs at least 1 position on each side, got {window}")
    return window

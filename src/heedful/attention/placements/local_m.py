"""Monotonic local attention (Luong 2015)."""

from __future__ import annotations

import torch

from heedful.attention.normalizers.base import Normalizer
from heedful.attention.placements.base import (
    Allowed,
    Placement,
    PlacementContext,
    PlacementOutput,
    Scores,
    check_window,
    distance,
)
from heedful.config import AttentionConfig


class LocalM(Placement):
    """Luong 2015 §3.2, monotonic: `p_t = min(t, T-1)`, window `|i - p_t| <= D`, no Gaussian."""

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = check_window(window)

    @classmethod
    def from_config(cls, config: AttentionConfig, query_size: int) -> Placement:
        return cls(config.window)

    def forward(
        self, scores: Scores, allowed: Allowed, normalizer: Normalizer, context: PlacementContext
    ) -> PlacementOutput:
        center = torch.minimum(context.positions, context.length[:, None] - 1)[..., None]
        near = distance(center.to(torch.float64), scores.shape[-1]) <= self.window
        by_head = center.expand(*center.shape[:2], scores.shape[2])
        return normalizer(scores, allowed & near), {"center": by_head.to(scores.dtype)}


PLACEMENT = LocalM

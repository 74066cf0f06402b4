"""Predictive local attention (Luong 2015)."""

from __future__ import annotations

import torch
from torch import nn

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
from heedful.trace.schema import Mass


class LocalP(Placement):
    """Luong 2015 §3.2, predictive: the query predicts a center, a Gaussian weights the keys around it (eq. 9 and 10).

    `p_t = (T-1) sigmoid(v' tanh(W s_t))`, window `|i - floor(p_t)| <= D`, and the weights of the window times
    `exp(-(i - p_t)^2 / (2 (D/2)^2))`. As in the released code the product is not renormalized unless `renormalize`.
    """

    def __init__(self, query_size: int, window: int, renormalize: bool = False) -> None:
        super().__init__()
        self.window = check_window(window)
        self.renormalize = renormalize
        self.inner = nn.Linear(query_size, query_size, bias=False)
        self.outer = nn.Linear(query_size, 1, bias=False)

    @classmethod
    def from_config(cls, config: AttentionConfig, query_size: int) -> Placement:
        return cls(query_size, config.window, config.renormalize)

    def mass(self, normalizer_mass: Mass) -> Mass:
        if self.renormalize:
            return "one"
        return "at_most_one" if normalizer_mass == "one" else normalizer_mass

    def forward(
        self, scores: Scores, allowed: Allowed, normalizer: Normalizer, context: PlacementContext
    ) -> PlacementOutput:
        fraction = torch.sigmoid(self.outer(torch.tanh(self.inner(context.query)))).squeeze(-1)
        # Positions need at least float32: bfloat16 represents 256 and 258, but not 257.
        fraction = fraction.to(torch.promote_types(fraction.dtype, torch.float32))
        center = fraction * (context.length[:, None, None] - 1).clamp_min(0)
        near = distance(center.detach().floor(), scores.shape[-1]) <= self.window
        deviation = self.window / 2
        gaussian = torch.exp(-distance(center, scores.shape[-1]).square() / (2 * deviation**2))
        weights = normalizer(scores, allowed & near) * gaussian.to(scores.dtype)
        if self.renormalize:
            total = weights.sum(dim=-1, keepdim=True)
            weights = weights / total.masked_fill(total == 0, 1.0)
        return weights, {"center": center.to(scores.dtype)}


PLACEMENT = LocalP

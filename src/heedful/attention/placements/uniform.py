"""Uniform weights, the baseline."""

from __future__ import annotations

import torch

from heedful.attention.normalizers.base import Normalizer
from heedful.attention.placements.base import Allowed, Placement, PlacementContext, PlacementOutput, Scores
from heedful.trace.schema import Mass


class Uniform(Placement):
    """`1/T` on every allowed key: the baseline of faithfulness tests and comparisons."""

    def mass(self, normalizer_mass: Mass) -> Mass:
        return "one"  # whatever the scores are

    def forward(
        self, scores: Scores, allowed: Allowed, normalizer: Normalizer, context: PlacementContext
    ) -> PlacementOutput:
        mask = allowed.to(torch.promote_types(scores.dtype, torch.float32))
        weights = mask / mask.sum(dim=-1, keepdim=True).clamp_min(1)
        return weights.to(scores.dtype).expand(scores.shape), {}


PLACEMENT = Uniform

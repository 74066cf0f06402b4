"""Global attention."""

from __future__ import annotations

from heedful.attention.normalizers.base import Normalizer
from heedful.attention.placements.base import Allowed, Placed, Placement, PlacementContext, Scores


class Global(Placement):
    """All keys that the mask allows."""

    def forward(self, scores: Scores, allowed: Allowed, normalize: Normalizer, context: PlacementContext) -> Placed:
        return normalize(scores, allowed), {}


PLACEMENT = Global

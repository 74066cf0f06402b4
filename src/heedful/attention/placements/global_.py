"""Global attention."""

from __future__ import annotations

from heedful.attention.normalizers.base import Normalizer
from heedful.attention.placements.base import Allowed, Placement, PlacementContext, PlacementOutput, Scores


class Global(Placement):
    """All keys that the mask allows."""

    def forward(
        self, scores: Scores, allowed: Allowed, normalizer: Normalizer, context: PlacementContext
    ) -> PlacementOutput:
        return normalizer(scores, allowed), {}


PLACEMENT = Global

"""Dot-product attention (Luong 2015)."""

from __future__ import annotations

from typing import ClassVar

from heedful.attention.scores.base import Keys, Query, Score, Scores, dot_products


class Dot(Score):
    """`q . k_i` (Luong 2015, eq. 8)."""

    same_size: ClassVar[bool] = True

    @property
    def scale(self) -> float:
        return 1.0

    def forward(self, query: Query, keys: Keys) -> Scores:
        return dot_products(query * self.scale, keys)


SCORE = Dot

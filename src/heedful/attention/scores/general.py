"""General (bilinear) attention (Luong 2015)."""

from __future__ import annotations

from torch import Tensor, nn

from heedful.attention.scores.base import Keys, Query, RawKeys, Score, Scores, dot_products


class General(Score):
    """`q' W k_i` (Luong 2015, eq. 8). `W k_i` is computed once per source."""

    scale = 1.0

    def __init__(self, query: int, key: int) -> None:
        super().__init__(query, key)
        self.key = nn.Linear(key, query, bias=False)

    def keys(self, keys: RawKeys) -> Keys:
        projected: Tensor = self.key(keys)
        return projected

    def forward(self, query: Query, keys: Keys) -> Scores:
        return dot_products(query, keys)


SCORE = General

"""General (bilinear) attention (Luong 2015)."""

from __future__ import annotations

from torch import Tensor, nn

from heedful.attention.scores.base import Keys, Query, RawKeys, Score, Scores, dot_products


class General(Score):
    """`q' W k_i` (Luong 2015, eq. 8). `W k_i` is computed once per source."""

    scale = 1.0

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__(query_size, key_size)
        self.key = nn.Linear(key_size, query_size, bias=False)

    def project_keys(self, keys: RawKeys) -> Keys:
        projected: Tensor = self.key(keys)
        return projected

    def forward(self, query: Query, keys: Keys) -> Scores:
        return dot_products(query, keys)


SCORE = General

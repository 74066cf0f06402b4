"""Location-based attention (Luong 2015)."""

from __future__ import annotations

from torch import Tensor, nn

from heedful.attention.scores.base import Keys, Query, Score, Scores
from heedful.config import AttentionConfig


class Location(Score):
    """`(W q)_i` (Luong 2015, eq. 7): depends on the query and the position, never on a key; W has `max_keys` rows.

    Positions beyond the last row score 0; `Attention` decides whether they may be attended to at all.
    """

    def __init__(self, query_size: int, key_size: int, max_keys: int) -> None:
        super().__init__(query_size, key_size)
        self.max_keys = max_keys
        self.rows = nn.Linear(query_size, max_keys, bias=False)

    @classmethod
    def from_config(cls, config: AttentionConfig, query_size: int, key_size: int) -> Score:
        return cls(query_size, key_size, config.max_source_positions)

    def forward(self, query: Query, keys: Keys) -> Scores:
        count = keys.shape[1]
        scores: Tensor = self.rows(query)[..., :count]
        return nn.functional.pad(scores, (0, count - scores.shape[-1]))


SCORE = Location

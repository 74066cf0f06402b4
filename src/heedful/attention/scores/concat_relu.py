"""The score of NAIS-concat (He 2018)."""

from __future__ import annotations

import torch
from torch import nn

from heedful.attention.scores.base import Keys, Query, RawKeys, Score, Scores, pairwise_sum
from heedful.config import AttentionConfig


class ConcatRelu(Score):
    """`h' relu(W [q; k_i] + b)` (He 2018, eq. 6, NAIS-concat)."""

    def __init__(self, query: int, key: int, hidden: int) -> None:
        super().__init__(query, key)
        self.both = nn.Linear(query + key, hidden)
        self.h = nn.Parameter(torch.ones(hidden))  # as in the authors' code

    @classmethod
    def from_config(cls, config: AttentionConfig, query: int, key: int) -> Score:
        return cls(query, key, config.hidden)

    def keys(self, keys: RawKeys) -> Keys:
        return keys @ self.both.weight[:, self.query_size :].T + self.both.bias

    def forward(self, query: Query, keys: Keys) -> Scores:
        return torch.relu(pairwise_sum(query @ self.both.weight[:, : self.query_size].T, keys)) @ self.h


SCORE = ConcatRelu

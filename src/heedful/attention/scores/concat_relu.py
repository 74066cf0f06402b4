"""The score of NAIS-concat (He 2018)."""

from __future__ import annotations

import torch
from torch import nn

from heedful.attention.scores.base import Keys, Query, RawKeys, Score, Scores, pairwise_sum
from heedful.config import AttentionConfig


class ConcatRelu(Score):
    """`h' relu(W [q; k_i] + b)` (He 2018, eq. 6, NAIS-concat)."""

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:
        super().__init__(query_size, key_size)
        self.both = nn.Linear(query_size + key_size, hidden_size)
        self.h = nn.Parameter(torch.ones(hidden_size))  # as in the authors' code

    @classmethod
    def from_config(cls, config: AttentionConfig, query_size: int, key_size: int) -> Score:
        return cls(query_size, key_size, config.hidden)

    def project_keys(self, keys: RawKeys) -> Keys:
        return keys @ self.both.weight[:, self.query_size :].T + self.both.bias

    def forward(self, query: Query, keys: Keys) -> Scores:
        return torch.relu(pairwise_sum(query @ self.both.weight[:, : self.query_size].T, keys)) @ self.h


SCORE = ConcatRelu

"""Concat attention (Luong 2015)."""

from __future__ import annotations

import torch
from torch import nn

from heedful.attention.scores.base import Keys, Query, RawKeys, Score, Scores, pairwise_sum, uniform_vector
from heedful.config import AttentionConfig


class Concat(Score):
    """`v' tanh(W [q; k_i])` (Luong 2015, eq. 8): additive attention, written with one matrix."""

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:
        super().__init__(query_size, key_size)
        self.both = nn.Linear(query_size + key_size, hidden_size, bias=False)
        self.v = uniform_vector(hidden_size)

    @classmethod
    def from_config(cls, config: AttentionConfig, query_size: int, key_size: int) -> Score:
        return cls(query_size, key_size, config.hidden)

    def project_keys(self, keys: RawKeys) -> Keys:
        return keys @ self.both.weight[:, self.query_size :].T

    def forward(self, query: Query, keys: Keys) -> Scores:
        return torch.tanh(pairwise_sum(query @ self.both.weight[:, : self.query_size].T, keys)) @ self.v


SCORE = Concat

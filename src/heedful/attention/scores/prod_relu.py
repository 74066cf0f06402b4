"""The score of NAIS-prod (He 2018)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import nn

from heedful.attention.scores.base import Keys, Query, Score, Scores
from heedful.config import AttentionConfig


class ProdRelu(Score):
    """`h' relu(W (q * k_i) + b)` (He 2018, eq. 6, NAIS-prod)."""

    same_size: ClassVar[bool] = True

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:
        super().__init__(query_size, key_size)
        self.product = nn.Linear(key_size, hidden_size)
        self.h = nn.Parameter(torch.ones(hidden_size))  # as in the authors' code

    @classmethod
    def from_config(cls, config: AttentionConfig, query_size: int, key_size: int) -> Score:
        return cls(query_size, key_size, config.hidden)

    def forward(self, query: Query, keys: Keys) -> Scores:
        products = query[:, :, :, None, :] * keys.transpose(1, 2)[:, None]
        return torch.relu(self.product(products)) @ self.h


SCORE = ProdRelu

"""Additive attention (Bahdanau 2015), also with coverage (See 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.attention.scores.base import Keys, Query, RawKeys, Score, Scores, pairwise_sum, uniform_vector
from heedful.attention.types import Carry, Memory, check_shape
from heedful.config import AttentionConfig
from heedful.errors import ShapeError

COVERAGE = "coverage"


class Additive(Score):
    """`v' tanh(W_q q + W_k k_i)` (Bahdanau 2015, appendix A.1.2). `W_k k_i` is computed once per source.

    With `bias` it is `W_k k_i + b`, also computed once.
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int, bias: bool = False) -> None:
        super().__init__(query_size, key_size)
        self.query = nn.Linear(query_size, hidden_size, bias=False)
        self.key = nn.Linear(key_size, hidden_size, bias=bias)
        self.v = uniform_vector(hidden_size)

    @classmethod
    def from_config(cls, config: AttentionConfig, query_size: int, key_size: int) -> Score:
        score_class = CoverageAdditive if config.coverage else Additive
        return score_class(query_size, key_size, config.hidden, config.bias)

    def project_keys(self, keys: RawKeys) -> Keys:
        projected: Tensor = self.key(keys)
        return projected

    def forward(self, query: Query, keys: Keys) -> Scores:
        return torch.tanh(pairwise_sum(self.query(query), keys)) @ self.v


class CoverageAdditive(Additive):
    """`v' tanh(W_q q + W_k k_i + w_c C_i)` (See 2017, eq. 11), where C_i is the sum of key i's weights so far.

    The carry holds C; the coverage loss (eq. 12) is in the extras of the output.
    """

    sequential: ClassVar[bool] = True

    def __init__(self, query_size: int, key_size: int, hidden_size: int, bias: bool = False) -> None:
        super().__init__(query_size, key_size, hidden_size, bias)
        self.w_c = uniform_vector(hidden_size)

    def initial_carry(self, memory: Memory, queries: int) -> Carry:
        batch, count, heads, _ = memory.keys.shape
        return {COVERAGE: memory.values.new_zeros(batch, queries, heads, count)}

    def score_step(self, query: Query, keys: Keys, carry: Carry) -> Scores:
        if COVERAGE not in carry:
            raise ShapeError("attention with coverage needs the carry of the step before; begin with initial_carry()")
        coverage = carry[COVERAGE]
        check_shape("coverage", coverage.shape, "this call", (*query.shape[:3], keys.shape[1]))
        coverage_term = coverage[..., None] * self.w_c
        return torch.tanh(pairwise_sum(self.query(query), keys) + coverage_term) @ self.v

    def update_carry(self, carry: Carry, weights: Scores) -> tuple[Carry, Mapping[str, Tensor]]:
        coverage = carry[COVERAGE]
        return {COVERAGE: coverage + weights}, {"coverage_loss": coverage_loss(weights, coverage)}


def coverage_loss(
    weights: Float[Tensor, "batch query head key"], coverage: Float[Tensor, "batch query head key"]
) -> Float[Tensor, "batch query head"]:
    """Return `sum_i min(a_i, C_i)` (See 2017, eq. 12): the penalty on attending again to covered keys."""
    return torch.minimum(weights, coverage).sum(dim=-1)


SCORE = Additive

"""The base class of scores, and functions that several of them use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.attention.types import EMPTY, Carry, Memory
from heedful.config import AttentionConfig
from heedful.errors import ShapeError

Query = Float[Tensor, "batch query head width"]
RawKeys = Float[Tensor, "batch key head size"]
Keys = Float[Tensor, "batch key head inner"]
Scores = Float[Tensor, "batch query head key"]


class Score(nn.Module):
    """Base class of scores: `project_keys` runs once per source, `forward` for any number of queries.

    Tensors have a head axis; the heads share the parameters of a score.

    >>> class Distance(Score):
    ...     same_size = True
    ...     def forward(self, query, keys):
    ...         return -torch.cdist(query.transpose(1, 2), keys.transpose(1, 2)).transpose(1, 2)
    >>> Distance(query_size=2, key_size=2)(torch.zeros(1, 1, 1, 2), torch.tensor([[[[3.0, 4.0]], [[0.0, 1.0]]]]))
    tensor([[[[-5., -1.]]]])
    """

    same_size: ClassVar[bool] = False  # whether queries and keys must have the same size
    sequential: ClassVar[bool] = False  # whether a step needs the carry of the step before
    max_keys: int | None = None  # length of the longest source that it can score; None: no limit

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        if self.same_size and query_size != key_size:
            raise ShapeError(
                f"the {type(self).__name__} score needs queries and keys of one size, but the query has {query_size}"
                f" and the key {key_size}; use another score, such as general, or attention heads"
            )
        self.query_size = query_size
        self.key_size = key_size

    @classmethod
    def from_config(cls, config: AttentionConfig, query_size: int, key_size: int) -> Score:
        """Build the score for queries and keys of these sizes."""
        return cls(query_size, key_size)

    def project_keys(self, keys: RawKeys) -> Keys:
        """Return the part of the score that depends only on the keys; by default the keys themselves."""
        return keys

    def forward(self, query: Query, keys: Keys) -> Scores:
        raise NotImplementedError(f"{type(self).__name__} does not define forward")

    def initial_carry(self, memory: Memory, queries: int) -> Carry:
        """Return the carry of the first step."""
        return EMPTY

    def score_step(self, query: Query, keys: Keys, carry: Carry) -> Scores:
        """Return the scores of a step that may depend on the steps before it."""
        scores: Tensor = self(query, keys)
        return scores

    def update_carry(self, carry: Carry, weights: Scores) -> tuple[Carry, Mapping[str, Tensor]]:
        """Return the carry of the next step, and the extras of this step's output."""
        return carry, EMPTY


def uniform_vector(size: int) -> nn.Parameter:
    """Return a weight vector, initialized as `nn.Linear` initializes its rows."""
    bound = 1.0 / math.sqrt(size)
    return nn.Parameter(torch.empty(size).uniform_(-bound, bound))


def pairwise_sum(
    query: Float[Tensor, "batch query head inner"], keys: Float[Tensor, "batch key head inner"]
) -> Float[Tensor, "batch query head key inner"]:
    """Return query + key for every pair."""
    return query[:, :, :, None, :] + keys.transpose(1, 2)[:, None]


def dot_products(
    query: Float[Tensor, "batch query head inner"], keys: Float[Tensor, "batch key head inner"]
) -> Float[Tensor, "batch query head key"]:
    """Return query . key for every pair."""
    return torch.einsum("bqhd,bkhd->bqhk", query, keys)

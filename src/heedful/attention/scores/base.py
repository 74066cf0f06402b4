"""What all scores share."""

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
    """Base of all scores: `keys` runs once per source, `forward` for any number of queries.

    Tensors have a head axis; the heads share the parameters of a score.

    >>> class Distance(Score):
    ...     same_size = True
    ...     def forward(self, query, keys):
    ...         return -torch.cdist(query.transpose(1, 2), keys.transpose(1, 2)).transpose(1, 2)
    >>> Distance(query=2, key=2)(torch.zeros(1, 1, 1, 2), torch.tensor([[[[3.0, 4.0]], [[0.0, 1.0]]]]))
    tensor([[[[-5., -1.]]]])
    """

    same_size: ClassVar[bool] = False  # must queries and keys have the same size?
    sequential: ClassVar[bool] = False  # does a step need the carry of the step before?
    max_keys: int | None = None  # longest source that it can score, None: no limit

    def __init__(self, query: int, key: int) -> None:
        super().__init__()
        if self.same_size and query != key:
            raise ShapeError(
                f"the {type(self).__name__} score needs queries and keys of one size, but the query has {query} and"
                f" the key {key}; use another score, such as general, or attention heads"
            )
        self.query_size = query
        self.key_size = key

    @classmethod
    def from_config(cls, config: AttentionConfig, query: int, key: int) -> Score:
        """Build the score for queries and keys of these sizes."""
        return cls(query, key)

    def keys(self, keys: RawKeys) -> Keys:
        """Return what depends on the keys alone; by default the keys themselves."""
        return keys

    def forward(self, query: Query, keys: Keys) -> Scores:
        raise NotImplementedError(f"{type(self).__name__} does not define forward")

    def initial_carry(self, memory: Memory, rows: int) -> Carry:
        """Return the carry of the first step."""
        return EMPTY

    def score_step(self, query: Query, keys: Keys, carry: Carry) -> Scores:
        """Return the scores of a step that may depend on the steps before it."""
        scores: Tensor = self(query, keys)
        return scores

    def update_carry(self, carry: Carry, weights: Scores) -> tuple[Carry, Mapping[str, Tensor]]:
        """Return the carry of the next step, and what to report of this one."""
        return carry, EMPTY


def uniform_vector(size: int) -> nn.Parameter:
    """Return a weight vector drawn as torch draws the rows of a Linear."""
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

"""Scores: how well a query and a key fit, before any mask or normaliser.

Each is a thin module with the same two calls: `keys` does once per sentence what depends on the keys
alone, `forward` does the rest for any number of queries. Tensors carry a head axis; a score's
parameters are shared by the heads.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.errors import ShapeError

Query = Float[Tensor, "batch query head width"]
RawKeys = Float[Tensor, "batch key head size"]
Keys = Float[Tensor, "batch key head inner"]
Scores = Float[Tensor, "batch query head key"]


def _vector(size: int) -> nn.Parameter:
    """A weight vector drawn as torch draws a Linear's rows."""
    bound = 1.0 / math.sqrt(size)
    return nn.Parameter(torch.empty(size).uniform_(-bound, bound))


def _pairs(query: Tensor, keys: Tensor) -> Tensor:
    """query + keys for every pair: (batch, query, head, key, width)."""
    return query[:, :, :, None, :] + keys.transpose(1, 2)[:, None]


def _dots(query: Tensor, keys: Tensor) -> Tensor:
    return torch.einsum("bqhd,bkhd->bqhk", query, keys)


class Score(nn.Module):
    """Base of all scores. `limit` is the longest source it can look at, None for no limit."""

    limit: int | None = None

    def __init__(self, query: int, key: int) -> None:
        super().__init__()
        self.query_size = query
        self.key_size = key

    def keys(self, keys: RawKeys) -> Keys:
        """What depends on the keys alone; by default nothing."""
        return keys

    def forward(self, query: Query, keys: Keys) -> Scores:
        raise TypeError(f"{type(self).__name__} does not say how to score")


class Additive(Score):
    """`v' tanh(W_q q + W_k k_i)` (Bahdanau 2015, appendix A.1.2). `W_k k_i` is computed once per sentence.

    With `bias` it is `W_k k_i + b`, so that a look costs no more.
    """

    def __init__(self, query: int, key: int, hidden: int, bias: bool = False) -> None:
        super().__init__(query, key)
        self.query = nn.Linear(query, hidden, bias=False)
        self.key = nn.Linear(key, hidden, bias=bias)
        self.v = _vector(hidden)

    def keys(self, keys: RawKeys) -> Keys:
        projected: Tensor = self.key(keys)
        return projected

    def forward(self, query: Query, keys: Keys) -> Scores:
        return torch.tanh(_pairs(self.query(query), keys)) @ self.v


class CoverageAdditive(Additive):
    """`v' tanh(W_q q + W_k k_i + w_c C_i)` (See 2017, eq. 11): C_i is what key i has received so far."""

    def __init__(self, query: int, key: int, hidden: int, bias: bool = False) -> None:
        super().__init__(query, key, hidden, bias)
        self.w_c = _vector(hidden)

    def covered(self, query: Query, keys: Keys, coverage: Scores) -> Scores:
        seen = coverage[..., None] * self.w_c
        return torch.tanh(_pairs(self.query(query), keys) + seen) @ self.v


class Concat(Score):
    """`v' tanh(W [q; k_i])` (Luong 2015, eq. 8): additive, written with one matrix."""

    def __init__(self, query: int, key: int, hidden: int) -> None:
        super().__init__(query, key)
        self.both = nn.Linear(query + key, hidden, bias=False)
        self.v = _vector(hidden)

    def keys(self, keys: RawKeys) -> Keys:
        return keys @ self.both.weight[:, self.query_size :].T

    def forward(self, query: Query, keys: Keys) -> Scores:
        return torch.tanh(_pairs(query @ self.both.weight[:, : self.query_size].T, keys)) @ self.v


class Dot(Score):
    """`q . k_i` (Luong 2015, eq. 8)."""

    name = "dot"

    def __init__(self, query: int, key: int) -> None:
        super().__init__(query, key)
        if query != key:
            raise ShapeError(
                f"score {self.name} needs queries and keys of one size, but the query has {query} and the"
                f" key {key}; general takes any two sizes"
            )

    @property
    def scale(self) -> float:
        return 1.0

    def forward(self, query: Query, keys: Keys) -> Scores:
        return _dots(query * self.scale, keys)


class ScaledDot(Dot):
    """`q . k_i / sqrt(d)` (Vaswani 2017, eq. 1): the variance of the scores does not grow with the width."""

    name = "scaled-dot"

    @property
    def scale(self) -> float:
        return 1.0 / math.sqrt(self.key_size)


class General(Score):
    """`q' W k_i` (Luong 2015, eq. 8). `W k_i` is computed once per sentence."""

    scale = 1.0

    def __init__(self, query: int, key: int) -> None:
        super().__init__(query, key)
        self.key = nn.Linear(key, query, bias=False)

    def keys(self, keys: RawKeys) -> Keys:
        projected: Tensor = self.key(keys)
        return projected

    def forward(self, query: Query, keys: Keys) -> Scores:
        return _dots(query, keys)


class Location(Score):
    """`(W q)_i` (Luong 2015, eq. 7): looks at the query alone, never at a key; W has `limit` rows.

    Positions past the table score 0; whether they may be read at all is the caller's business.
    """

    def __init__(self, query: int, key: int, limit: int) -> None:
        super().__init__(query, key)
        self.limit = limit
        self.rows = nn.Linear(query, limit, bias=False)

    def forward(self, query: Query, keys: Keys) -> Scores:
        count = keys.shape[1]
        scores: Tensor = self.rows(query)[..., :count]
        return nn.functional.pad(scores, (0, count - scores.shape[-1]))


class ProdRelu(Score):
    """`h' relu(W (q * k_i) + b)` (He 2018, eq. 6, NAIS-prod)."""

    name = "prod-relu"

    def __init__(self, query: int, key: int, hidden: int) -> None:
        super().__init__(query, key)
        if query != key:
            raise ShapeError(
                f"score {self.name} multiplies query and key, but the query has {query} and the key {key};"
                " concat-relu takes any two sizes"
            )
        self.product = nn.Linear(key, hidden)
        self.h = nn.Parameter(torch.ones(hidden))  # as in the authors' code

    def forward(self, query: Query, keys: Keys) -> Scores:
        products = query[:, :, :, None, :] * keys.transpose(1, 2)[:, None]
        return torch.relu(self.product(products)) @ self.h


class ConcatRelu(Score):
    """`h' relu(W [q; k_i] + b)` (He 2018, eq. 6, NAIS-concat)."""

    def __init__(self, query: int, key: int, hidden: int) -> None:
        super().__init__(query, key)
        self.both = nn.Linear(query + key, hidden)
        self.h = nn.Parameter(torch.ones(hidden))

    def keys(self, keys: RawKeys) -> Keys:
        return keys @ self.both.weight[:, self.query_size :].T + self.both.bias

    def forward(self, query: Query, keys: Keys) -> Scores:
        return torch.relu(_pairs(query @ self.both.weight[:, : self.query_size].T, keys)) @ self.h


SCORES: dict[str, type[Score]] = {
    "additive": Additive,
    "concat": Concat,
    "dot": Dot,
    "scaled-dot": ScaledDot,
    "general": General,
    "location": Location,
    "prod-relu": ProdRelu,
    "concat-relu": ConcatRelu,
}

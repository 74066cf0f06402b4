"""Multi-head attention: the projections of Vaswani 2017, §3.2.2."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from heedful.errors import ShapeError


class Heads(nn.Module):
    """Project queries, keys and values to `width`, split them into `count` heads, and join the heads by `out`."""

    def __init__(
        self, count: int, width: int, *, query: int, key: int, value: int | None = None, bias: bool = True
    ) -> None:
        super().__init__()
        if count < 1 or width % count:
            raise ShapeError(f"a width of {width} is not divisible by {count} heads")
        self.count = count
        self.width = width
        self.to_query = nn.Linear(query, width, bias=bias)
        self.to_key = nn.Linear(key, width, bias=bias)
        self.to_value = nn.Linear(key if value is None else value, width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)

    @property
    def per_head(self) -> int:
        """Return the width of one head."""
        return self.width // self.count

    def query(self, query: Float[Tensor, "batch query size"]) -> Float[Tensor, "batch query head width"]:
        return self._split(self.to_query, query, "query")

    def keys(self, keys: Float[Tensor, "batch key size"]) -> Float[Tensor, "batch key head width"]:
        return self._split(self.to_key, keys, "key")

    def values(self, values: Float[Tensor, "batch key size"]) -> Float[Tensor, "batch key head width"]:
        return self._split(self.to_value, values, "value")

    def join(self, context: Float[Tensor, "batch query head width"]) -> Float[Tensor, "batch query out"]:
        joined: Tensor = self.out(context.flatten(start_dim=2))
        return joined

    def _split(self, projection: nn.Module, x: Tensor, name: str) -> Tensor:
        if x.shape[-1] != projection.in_features:
            raise ShapeError(f"a {name} has size {x.shape[-1]}, but the heads expect {projection.in_features}")
        projected: Tensor = projection(x)
        return projected.view(*x.shape[:-1], self.count, self.per_head)

"""Multi-head attention: the projections of Vaswani 2017, §3.2.2."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from heedful.errors import ShapeError


class Heads(nn.Module):
    """Project queries, keys and values to `width` and split them into `count` heads; `join` projects the result."""

    def __init__(
        self,
        count: int,
        width: int,
        *,
        query_size: int,
        key_size: int,
        value_size: int | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if count < 1 or width % count:
            raise ShapeError(f"a width of {width} is not divisible by {count} heads")
        self.count = count
        self.width = width
        self.to_query = nn.Linear(query_size, width, bias=bias)
        self.to_key = nn.Linear(key_size, width, bias=bias)
        self.to_value = nn.Linear(key_size if value_size is None else value_size, width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)

    @property
    def head_width(self) -> int:
        """Return the width of one head."""
        return self.width // self.count

    def split_query(self, query: Float[Tensor, "batch query size"]) -> Float[Tensor, "batch query head width"]:
        return self._project_and_split(self.to_query, query, "query")

    def split_keys(self, keys: Float[Tensor, "batch key size"]) -> Float[Tensor, "batch key head width"]:
        return self._project_and_split(self.to_key, keys, "key")

    def split_values(self, values: Float[Tensor, "batch key size"]) -> Float[Tensor, "batch key head width"]:
        return self._project_and_split(self.to_value, values, "value")

    def join(self, context: Float[Tensor, "batch query head width"]) -> Float[Tensor, "batch query out"]:
        """Concatenate the heads and project them by `out`."""
        joined: Tensor = self.out(context.flatten(start_dim=2))
        return joined

    def _project_and_split(self, projection: nn.Module, x: Tensor, name: str) -> Tensor:
        if x.shape[-1] != projection.in_features:
            raise ShapeError(f"a {name} has size {x.shape[-1]}, but the heads expect {projection.in_features}")
        projected: Tensor = projection(x)
        return projected.view(*x.shape[:-1], self.count, self.head_width)

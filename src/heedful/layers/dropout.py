"""Dropout, per element or per sequence."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from heedful.kernels import dropout


class Dropout(nn.Module):
    """Zero a fraction `p` of the elements in training and scale the others by 1 / (1 - p), as `nn.Dropout` does."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class VariationalDropout(Dropout):
    """Variational dropout (Gal 2016): one mask per sequence, the same at every step."""

    def forward(self, x: Float[Tensor, "row query width"]) -> Float[Tensor, "row query width"]:
        if not self.training or self.p == 0.0:
            return x
        return x * dropout(x.new_ones(len(x), 1, x.shape[-1]), self.p, self.training)

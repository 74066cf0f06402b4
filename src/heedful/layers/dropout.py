"""Dropout as a part of a model."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from heedful.native import dropout


class Dropout(nn.Module):
    """While training, zeros of a share `p`; what is left grows to make up for it."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Locked(Dropout):
    """One choice for all steps of a row (Gal 2016): what is dropped at one word is dropped at all of them."""

    def forward(self, x: Float[Tensor, "row query width"]) -> Float[Tensor, "row query width"]:
        if not self.training or self.p == 0.0:
            return x
        return x * dropout(x.new_ones(len(x), 1, x.shape[-1]), self.p, self.training)

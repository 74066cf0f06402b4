"""Dropout as a part of a model."""

from __future__ import annotations

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

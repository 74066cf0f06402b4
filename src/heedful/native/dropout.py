"""Dropout whose choices are hashed, not stored: torch's draws cost more than many a matrix product."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from heedful.native.kernels import Chance, fits

SEEDS = 2**32


class _Drop(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, chance: Chance) -> Tensor:
        ctx.chance = chance
        return chance.apply(x)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None]:
        return ctx.chance.apply(grads[0]), None


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """`torch.dropout`, by way of the kernels where they fit; torch's generator still decides everything."""
    if not training or p == 0.0:
        return x
    if p >= 1.0 or not fits(x):
        return nn.functional.dropout(x, p)
    dropped: Tensor = _Drop.apply(x, Chance(p, int(torch.randint(SEEDS, ()))))  # type: ignore[no-untyped-call]
    return dropped

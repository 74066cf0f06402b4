"""Dropout whose choices are hashed, not stored: torch's draws cost more than many a matrix product."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.autograd import Function

from heedful.native.kernels import Chance, fits

SEEDS = 2**32
_mine = threading.local()


@contextmanager
def drawing(seed: int) -> Iterator[None]:
    """This thread's dropout draws from a generator of its own: others may draw meanwhile."""
    _mine.generator = Generator().manual_seed(seed)
    try:
        yield
    finally:
        del _mine.generator


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
    seed = int(torch.randint(SEEDS, (), generator=getattr(_mine, "generator", None)))
    dropped: Tensor = _Drop.apply(x, Chance(p, seed))  # type: ignore[no-untyped-call]
    return dropped

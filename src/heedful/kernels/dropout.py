"""Dropout whose mask is computed by a hash: drawing a mask with torch can cost more than a matrix product."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool
from torch import Generator, Tensor, nn
from torch.autograd import Function

from heedful.kernels import loader
from heedful.kernels.guards import accepts, admits, is_dropout_active

UINT32 = 2**32
_thread = threading.local()


class DropoutMask(NamedTuple):
    """A dropout mask: element i is kept if the hash of i and the seed is below `limit`."""

    p: float
    seed: int

    @property
    def limit(self) -> int:
        return min(UINT32 - 1, round((1.0 - self.p) * UINT32))

    def apply(self, x: Tensor) -> Tensor:
        """Return `x * mask / (1 - p)`; the backward pass applies the same function to the gradient."""
        library = loader.library()
        x = x.contiguous()
        scale = 1.0 / (1.0 - self.p)
        if library is not None and admits(x.shape, x):
            y = torch.empty_like(x)
            library.heed_dropout(x.data_ptr(), y.data_ptr(), x.numel(), self.limit, scale, self.seed)
            return y
        return x * (self.mask(x.numel()).view(x.shape).to(x.device) * scale).to(x.dtype)

    def mask(self, count: int) -> Bool[Tensor, "count"]:
        """Return the mask of `count` elements; the hash is that of `csrc/dropout.c`, in 64-bit integers."""
        h = (torch.arange(count) * 0x9E3779B9 + self.seed) & (UINT32 - 1)
        h = h ^ (h >> 16)
        h = (h * 0x7FEB352D) & (UINT32 - 1)
        h = h ^ (h >> 15)
        h = (h * 0x846CA68B) & (UINT32 - 1)
        h = h ^ (h >> 16)
        return h < self.limit


class _Dropout(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: DropoutMask) -> Tensor:
        ctx.mask = mask
        return mask.apply(x)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None]:
        return ctx.mask.apply(grads[0]), None


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Return `torch.dropout(x, p, training)`, with a hashed mask where the C kernels run.

    Torch's generator draws the seed of the hash.
    """
    if not is_dropout_active(p, training):
        return x
    if p >= 1.0 or not accepts(x):
        return nn.functional.dropout(x, p)
    seed = int(torch.randint(UINT32, (), generator=getattr(_thread, "generator", None)))
    dropped: Tensor = _Dropout.apply(x, DropoutMask(p, seed))  # type: ignore[no-untyped-call]
    return dropped


@contextmanager
def seeded_dropout(seed: int) -> Iterator[None]:
    """Give this thread's dropout its own seeded generator, so that results do not depend on other threads."""
    _thread.generator = Generator().manual_seed(seed)
    try:
        yield
    finally:
        del _thread.generator

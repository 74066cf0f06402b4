"""Linear layers and GRUs with int8 weights."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.errors import ShapeError
from heedful.kernels import loader
from heedful.kernels.guards import accepts, admits
from heedful.kernels.structs import Int8Matrix

MAX_INPUTS = 2**16  # of one product in C, whose sums are 32-bit integers
MIN_MAGNITUDE = 1e-30  # rows of smaller numbers count as zeros, as in csrc/int8.c


class Int8Product:
    """`x W' + b` with W in int8, one scale per row; x is quantized row by row in each call.

    Quantization is symmetric: an entry is an integer from -127 to 127, times the largest magnitude of its row over
    127. Without the C kernels the same integers are multiplied in float32.
    """

    def __init__(self, weight: Float[Tensor, "out in"], bias: Float[Tensor, "out"] | None = None) -> None:
        weight = weight.detach().float()
        self.shape = weight.shape
        self.bias = None if bias is None else bias.detach().float().contiguous()
        self.scales = (weight.abs().amax(dim=1) / 127.0).clamp_min(1e-12)
        quantized = (weight / self.scales[:, None]).round().to(torch.int8).contiguous()
        self.row_sums = quantized.to(torch.int32).sum(dim=1, dtype=torch.int32)
        n, k = quantized.shape
        library = loader.library() if k <= MAX_INPUTS else None
        self.matrix: Int8Matrix | None = None
        self.quantized: Tensor | None = None  # integers stored as float32, for use without the kernels
        if library is None:
            self.quantized = quantized.float()
            return
        self.packed = torch.empty(-(-n // 16) * -(-k // 4) * 64, dtype=torch.int8)
        library.heed_pack_int8(quantized.data_ptr(), n, k, self.packed.data_ptr())
        parts = (self.packed, self.row_sums, self.scales)
        bias_address = None if self.bias is None else self.bias.data_ptr()
        self.matrix = Int8Matrix(*(t.data_ptr() for t in parts), bias_address, n, k)
        self.address = ctypes.addressof(self.matrix)

    def __call__(self, x: Float[Tensor, "row in"], out: Tensor | None = None) -> Float[Tensor, "row out"]:
        (n, k), rows = self.shape, len(x)
        y = x.new_empty(rows, n) if out is None else out
        library = loader.library()
        if library is not None and self.matrix is not None:
            x = x.contiguous()
            if not (admits((rows, k), x) and admits((rows, n), y)):
                raise ShapeError(f"an int8 product needs float32 on the CPU, got {x.dtype} on {x.device}")
            workspace = torch.empty(rows * (k + 8), dtype=torch.uint8)
            library.heed_int8_linear(self.address, x.data_ptr(), y.data_ptr(), workspace.data_ptr(), rows)
            return y
        assert self.quantized is not None
        largest = x.abs().amax(dim=1, keepdim=True)
        x_scale = torch.where(largest > MIN_MAGNITUDE, largest / 127.0, 1.0)
        torch.mm((x * (1.0 / x_scale)).round(), self.quantized.T, out=y)
        y.mul_(x_scale).mul_(self.scales)
        return y if self.bias is None else y.add_(self.bias)


def int8_gru_sequence(
    gi: Float[Tensor, "word gates"], sizes: Sequence[int], hidden: Int8Product, reverse: bool
) -> Float[Tensor, "word hidden"] | None:
    """Return all states of a GRU over packed sentences (`fused/packed_gru.py`) in one call; None without kernels."""
    library = loader.library()
    if library is None or hidden.matrix is None or not accepts(gi):
        return None
    gi, n = gi.contiguous(), hidden.shape[1]
    if sum(sizes) != len(gi) or any(size < after for size, after in pairwise([*sizes, 0])):
        raise ShapeError(f"the sizes of the steps must fall and add up to {len(gi)} words, got {sum(sizes)}")
    if not admits((len(gi), 3 * n), gi) or hidden.shape[0] != 3 * n:
        raise ShapeError(f"the hidden matrix of a GRU must be (3 n, n), got {tuple(hidden.shape)}")
    out = gi.new_empty(len(gi), n)
    if not len(gi):
        return out
    counts = torch.tensor(sizes)
    workspace = gi.new_empty(sizes[0] * (7 * n + n // 4 + 4))
    library.heed_gru_sequence(
        hidden.address, gi.data_ptr(), counts.data_ptr(), len(sizes), int(reverse), out.data_ptr(),
        workspace.data_ptr(), sizes[0], n,
    )  # fmt: skip
    return out

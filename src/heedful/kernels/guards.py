"""The conditions under which a C kernel or a fused operation may replace plain PyTorch code.

C reads and writes the memory behind a pointer without asking. Every tensor whose address is passed to a kernel has been
checked here (`admits`, `admits_mask`, `check_indices`, `check_offsets`) or was allocated by the function that calls the
kernel.
"""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.errors import ShapeError
from heedful.kernels import loader

_FLOAT32, _BOOL, _INT64 = torch.float32, torch.bool, torch.int64


def is_full_precision(*tensors: Tensor) -> bool:
    """Return whether the tensors are float32 or float64 and autocast does not change that."""
    return all(
        t.dtype in (torch.float32, torch.float64) and not torch.is_autocast_enabled(t.device.type) for t in tensors
    )


def accepts(*tensors: Tensor) -> bool:
    """Return whether the C kernels are loaded and take these tensors: float32 on the CPU."""
    return loader.library() is not None and all(t.dtype is _FLOAT32 and t.is_cpu for t in tensors)


def supports(*tensors: Tensor, gradients: bool = True) -> bool:
    """Return whether the C kernels may replace torch on these tensors: `accepts`, and no autocast.

    `gradients=False` is for a kernel without a backward pass: it may run only where torch records no gradients.
    """
    return accepts(*tensors) and not torch.is_autocast_enabled("cpu") and (gradients or not torch.is_grad_enabled())


def is_dropout_active(p: float, training: bool) -> bool:
    """Return whether dropout with probability `p` has any effect in this mode."""
    return training and p > 0.0


def admits(shape: tuple[int, ...], *tensors: Tensor) -> bool:
    """Return whether a kernel may be given the addresses of these tensors: float32 on the CPU.

    Raise ShapeError if it is, but a tensor is not contiguous or does not have this shape.
    """
    for t in tensors:  # one loop without calls: this runs in every step of a decoder
        if t.dtype is not _FLOAT32 or not t.is_cpu:
            return False
        if t.shape != shape or not t.is_contiguous():
            raise _mismatch(t, shape)
    return True


def admits_rows(shape: tuple[int, int], matrix: Tensor) -> bool:
    """Return what `admits` returns, for a matrix of contiguous rows that may lie apart."""
    if matrix.dtype is not _FLOAT32 or not matrix.is_cpu:
        return False
    if matrix.shape != shape or (matrix.numel() and (matrix.stride(1) != 1 or matrix.stride(0) < shape[1])):
        raise _mismatch(matrix, shape)
    return True


def admits_mask(shape: tuple[int, ...], mask: Tensor) -> bool:
    """Return what `admits` returns, for a mask: bool on the CPU."""
    if mask.dtype is not _BOOL or not mask.is_cpu:
        return False
    if mask.shape != shape or not mask.is_contiguous():
        raise _mismatch(mask, shape)
    return True


def check_indices(indices: Int[Tensor, "..."], shape: tuple[int, ...], size: int, name: str) -> None:
    """Raise ShapeError unless the indices are contiguous int64 of this shape on the CPU, each from 0 to `size` - 1."""
    if indices.shape != shape or indices.dtype is not _INT64 or not indices.is_cpu or not indices.is_contiguous():
        raise _mismatch(indices, shape)
    library = loader.library()
    if library is not None:
        position = library.heed_find_out_of_range(indices.data_ptr(), indices.numel(), 0, size)
        if position >= 0:
            raise out_of_range(name, int(indices.view(-1)[position]), size)
    elif len(wrong := indices[(indices < 0) | (indices >= size)]):
        raise out_of_range(name, int(wrong[0]), size)


def check_offsets(offsets: Int[Tensor, "n1"], total: int, name: str) -> None:
    """Raise ShapeError unless the offsets start at 0, never fall and end at `total`."""
    if offsets.dim() != 1 or offsets.dtype is not _INT64 or not offsets.is_cpu or not offsets.is_contiguous():
        raise _mismatch(offsets, (len(offsets),))
    library = loader.library()
    if library is not None:
        valid = bool(library.heed_are_offsets(offsets.data_ptr(), len(offsets), total))
    else:
        ends = len(offsets) > 0 and int(offsets[0]) == 0 and int(offsets[-1]) == total
        valid = ends and bool((offsets.diff() >= 0).all())
    if not valid:
        raise ShapeError(f"{name} must start at 0, never fall and end at {total}")


def out_of_range(name: str, index: int, size: int) -> ShapeError:
    """Return the error for an index that is not in a vocabulary or table of this size."""
    known = f"only 0 to {size - 1} exist" if size else "there are none"
    return ShapeError(f"{name} {index} does not exist: {known}")


def _mismatch(tensor: Tensor, shape: tuple[int, ...]) -> ShapeError:
    layout = "contiguous" if tensor.is_contiguous() else f"strides {tuple(tensor.stride())}"
    return ShapeError(
        f"a C kernel needs a contiguous tensor of shape {tuple(shape)} on the CPU, got {tuple(tensor.shape)},"
        f" {tensor.dtype}, {layout}, on {tensor.device}"
    )

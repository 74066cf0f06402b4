"""The conditions under which a C kernel or a fused operation may replace plain PyTorch code."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.kernels import loader


def is_full_precision(*tensors: Tensor) -> bool:
    """Return whether the tensors are float32 or float64 and autocast does not change that."""
    return all(
        t.dtype in (torch.float32, torch.float64) and not torch.is_autocast_enabled(t.device.type) for t in tensors
    )


def accepts(*tensors: Tensor) -> bool:
    """Return whether the C kernels are loaded and take these tensors: float32 on the CPU."""
    return loader.library() is not None and all(t.dtype == torch.float32 and t.device.type == "cpu" for t in tensors)


def supports(*tensors: Tensor, gradients: bool = True) -> bool:
    """Return whether the C kernels may replace torch on these tensors: `accepts`, and no autocast.

    `gradients=False` is for a kernel without a backward pass: it may run only where torch records no gradients.
    """
    return accepts(*tensors) and not torch.is_autocast_enabled("cpu") and (gradients or not torch.is_grad_enabled())


def is_dropout_active(p: float, training: bool) -> bool:
    """Return whether dropout with probability `p` has any effect in this mode."""
    return training and p > 0.0

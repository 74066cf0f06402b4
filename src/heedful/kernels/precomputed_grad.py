"""Gradients that an autograd Function computes in its forward pass."""

from __future__ import annotations

from typing import Any

from torch import Tensor


def take_precomputed(ctx: Any, grad_output: Tensor) -> tuple[Tensor, ...]:
    """Return the gradients in `ctx.gradients` times `grad_output`, and drop them from `ctx`.

    They are large, so they are scaled in place and not copied: `backward()` may run only once.
    """
    gradients, ctx.gradients = ctx.gradients, None
    if gradients is None:
        raise RuntimeError("backward() through this loss may run only once: its gradients are not kept")
    return tuple(gradient.mul_(grad_output) for gradient in gradients)

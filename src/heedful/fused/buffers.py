"""The buffers that a fused operation saves for its backward pass."""

from __future__ import annotations

from typing import Any


def take_buffers(ctx: Any) -> Any:
    """Return `ctx.buffers` and drop them: the backward pass overwrites them with gradients, so it may run only once."""
    buffers, ctx.buffers = ctx.buffers, None
    if buffers is None:
        raise RuntimeError("backward() through these steps may run only once: their buffers are reused")
    return buffers

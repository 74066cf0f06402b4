"""Looks over histories (He 2018, NAIS) as one call: every target of an entry reads the entry's items.

`models/recommender.py` says it with the mechanisms of the attention room, entry by entry; the tests hold
the two equal. These are for float32 on the CPU, where the kernels were built (`fits`).
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd import Function

from heedful.native.loader import History, library
from heedful.native.once import given_away


class Ragged(NamedTuple):
    """Entries side by side: items `ids[bounds[e]:bounds[e + 1]]`, targets `targets[cuts[e]:cuts[e + 1]]`."""

    ids: Int[Tensor, "key"]
    bounds: Int[Tensor, "entries1"]
    targets: Int[Tensor, "row"]
    cuts: Int[Tensor, "entries1"]


PROD, CONCAT, DOT = range(3)  # as histories.c has them


class Weighing(NamedTuple):
    """How a history is weighed: `h' relu(W (p * q) + b)`, the same of `[p; q]`, or `scale p . q`.

    `beta` is the power of the smoothed softmax; 1 is softmax.
    """

    kind: int
    w: Float[Tensor, "hidden in"]
    b: Float[Tensor, "hidden"]
    h: Float[Tensor, "hidden"]
    beta: float
    scale: float = 1.0


def _call(ragged: Ragged, weighing: Weighing, keys: Tensor, queries: Tensor, **more: Tensor | None) -> None:
    found = library()
    assert found is not None
    own = {"w": weighing.w, "b": weighing.b, "h": weighing.h}
    given = {**ragged._asdict(), "keys": keys, "queries": queries, **own, **more}
    held = {name: tensor.contiguous() for name, tensor in given.items() if tensor is not None}
    pointers = {name: tensor.data_ptr() for name, tensor in held.items()}
    sizes = {"kind": weighing.kind, "width": queries.shape[-1], "hidden": len(weighing.h)}
    numbers = {"beta": weighing.beta, "scale": weighing.scale}
    call = History(**sizes, entries=len(ragged.bounds) - 1, **numbers, **pointers)
    if not found.heed_history(ctypes.addressof(call)):
        raise MemoryError


def history_logits(
    ragged: Ragged,
    weighing: Weighing,
    keys: Float[Tensor, "key width"],
    queries: Float[Tensor, "row width"],
    bias: Float[Tensor, "row"],
) -> Float[Tensor, "row"]:
    """`bias + p . sum_j a_j q_j` of every target, its own item left out. Nothing leads back."""
    logits = torch.empty_like(bias)
    _call(ragged, weighing, keys.detach(), queries.detach(), bias=bias.detach(), logits=logits)
    return logits


class _Loss(Function):
    """Gradients are computed with the loss, while what they need is at hand."""

    @staticmethod
    def forward(  # noqa: PLR0913 - what autograd is to know, one by one
        ctx: Any,
        keys: Tensor,
        queries: Tensor,
        bias: Tensor,
        w: Tensor,
        b: Tensor,
        h: Tensor,
        labels: Tensor,
        ragged: Ragged,
        weighing: Weighing,
    ) -> Tensor:
        logits, loss, dlogits = bias.new_empty(3, len(bias))
        slopes = [torch.empty_like(keys), torch.empty_like(queries), dlogits]
        slopes += [torch.zeros_like(tensor) for tensor in (w, b, h)]
        names = ("dkeys", "dqueries", "dlogits", "dw", "db", "dh")
        _call(
            ragged,
            weighing._replace(w=w, b=b, h=h),
            keys,
            queries,
            bias=bias,
            labels=labels,
            logits=logits,
            loss=loss,
            **dict(zip(names, slopes, strict=True)),
        )
        ctx.slopes = slopes
        total: Tensor = loss.sum()
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        return *given_away(ctx, grads[0]), None, None, None


def history_loss(
    ragged: Ragged,
    weighing: Weighing,
    keys: Float[Tensor, "key width"],
    queries: Float[Tensor, "row width"],
    bias: Float[Tensor, "row"],
    labels: Float[Tensor, "row"],
) -> Float[Tensor, ""]:
    """The summed log loss of all targets."""
    tensors = (keys.contiguous(), queries.contiguous(), bias, weighing.w, weighing.b, weighing.h)
    total: Tensor = _Loss.apply(*tensors, labels, ragged, weighing)  # type: ignore[no-untyped-call]
    return total

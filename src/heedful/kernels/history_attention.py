"""Attention over histories of items (He 2018, NAIS) by one call: every target of an entry attends to its items.

`models/recommender.py` computes the same entry by entry with the attention room; the tests hold both equal. These
functions need float32 tensors on the CPU and the C kernels (`supports`).
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd import Function

from heedful.kernels import loader
from heedful.kernels.precomputed_grad import take_precomputed
from heedful.kernels.structs import HistoryAttention


class Ragged(NamedTuple):
    """Entries of different lengths, concatenated.

    Entry e has the items `items[item_offsets[e]:item_offsets[e + 1]]` and the targets
    `targets[target_offsets[e]:target_offsets[e + 1]]`.
    """

    items: Int[Tensor, "key"]
    item_offsets: Int[Tensor, "entries1"]
    targets: Int[Tensor, "row"]
    target_offsets: Int[Tensor, "entries1"]


PROD, CONCAT, DOT = range(3)  # as in csrc/history_attention.c


class HistoryScore(NamedTuple):
    """Score and normalizer: `h' relu(W (p * q) + b)` (PROD), the same of `[p; q]` (CONCAT), or `scale p . q` (DOT).

    `beta` is the exponent of the smoothed softmax; 1 is softmax.
    """

    kind: int
    w: Float[Tensor, "hidden in"]
    b: Float[Tensor, "hidden"]
    h: Float[Tensor, "hidden"]
    beta: float
    scale: float = 1.0


def _call(ragged: Ragged, score: HistoryScore, keys: Tensor, queries: Tensor, **more: Tensor | None) -> None:
    library = loader.library()
    assert library is not None
    parameters = {"w": score.w, "b": score.b, "h": score.h}
    tensors = {**ragged._asdict(), "keys": keys, "queries": queries, **parameters, **more}
    held = {name: tensor.contiguous() for name, tensor in tensors.items() if tensor is not None}
    pointers = {name: tensor.data_ptr() for name, tensor in held.items()}
    sizes = {"kind": score.kind, "width": queries.shape[-1], "hidden": len(score.h)}
    numbers = {"beta": score.beta, "scale": score.scale}
    call = HistoryAttention(**sizes, entries=len(ragged.item_offsets) - 1, **numbers, **pointers)
    if not library.heed_history_attention(ctypes.addressof(call)):
        raise MemoryError


def history_logits(
    ragged: Ragged,
    score: HistoryScore,
    keys: Float[Tensor, "key width"],
    queries: Float[Tensor, "row width"],
    bias: Float[Tensor, "row"],
) -> Float[Tensor, "row"]:
    """Return `bias + p . sum_j a_j q_j` of every target, without its own item. No gradients."""
    logits = torch.empty_like(bias)
    _call(ragged, score, keys.detach(), queries.detach(), bias=bias.detach(), logits=logits)
    return logits


class _HistoryLoss(Function):
    """Computes the gradients together with the loss, while what they need is in the cache."""

    @staticmethod
    def forward(  # noqa: PLR0913 - autograd takes tensors one by one
        ctx: Any,
        keys: Tensor,
        queries: Tensor,
        bias: Tensor,
        w: Tensor,
        b: Tensor,
        h: Tensor,
        labels: Tensor,
        ragged: Ragged,
        score: HistoryScore,
    ) -> Tensor:
        logits, loss, dlogits = bias.new_empty(3, len(bias))
        gradients = [torch.empty_like(keys), torch.empty_like(queries), dlogits]
        gradients += [torch.zeros_like(tensor) for tensor in (w, b, h)]
        names = ("dkeys", "dqueries", "dlogits", "dw", "db", "dh")
        _call(
            ragged,
            score._replace(w=w, b=b, h=h),
            keys,
            queries,
            bias=bias,
            labels=labels,
            logits=logits,
            loss=loss,
            **dict(zip(names, gradients, strict=True)),
        )
        ctx.gradients = gradients
        total: Tensor = loss.sum()
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        return *take_precomputed(ctx, grads[0]), None, None, None


def history_loss(
    ragged: Ragged,
    score: HistoryScore,
    keys: Float[Tensor, "key width"],
    queries: Float[Tensor, "row width"],
    bias: Float[Tensor, "row"],
    labels: Float[Tensor, "row"],
) -> Float[Tensor, ""]:
    """Return the summed binary cross-entropy of all targets; `backward()` may run only once."""
    tensors = (keys.contiguous(), queries.contiguous(), bias, score.w, score.b, score.h)
    total: Tensor = _HistoryLoss.apply(*tensors, labels, ragged, score)  # type: ignore[no-untyped-call]
    return total

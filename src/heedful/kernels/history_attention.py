"""Attention over histories of items (He 2018, NAIS) in one call into C.

An entry is one history and the targets that attend to its items. `models/recommender.py` computes the same entry by
entry with the attention package; the tests compare both. The functions need the C kernels and float32 tensors on the
CPU (`supports`).
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


class HistoryEntries(NamedTuple):
    """The histories and targets of all entries, concatenated.

    Entry e has the items `items[item_offsets[e]:item_offsets[e + 1]]` and the targets
    `targets[target_offsets[e]:target_offsets[e + 1]]`.
    """

    items: Int[Tensor, "key"]
    item_offsets: Int[Tensor, "entries1"]
    targets: Int[Tensor, "row"]
    target_offsets: Int[Tensor, "entries1"]


PROD, CONCAT, DOT = range(3)  # as in csrc/history_attention.c


class HistoryScore(NamedTuple):
    """Score and normalizer: `h' relu(W (p * q) + b)` (PROD), `h' relu(W [p; q] + b)` (CONCAT), or `scale p . q` (DOT).

    `beta` is the exponent of the smoothed softmax; 1 is softmax.
    """

    kind: int
    w: Float[Tensor, "hidden in"]
    b: Float[Tensor, "hidden"]
    h: Float[Tensor, "hidden"]
    beta: float
    scale: float = 1.0


def _run_kernel(
    entries: HistoryEntries, score: HistoryScore, keys: Tensor, queries: Tensor, **more: Tensor | None
) -> None:
    library = loader.library()
    assert library is not None
    parameters = {"w": score.w, "b": score.b, "h": score.h}
    tensors = {**entries._asdict(), "keys": keys, "queries": queries, **parameters, **more}
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items() if tensor is not None}
    pointers = {name: tensor.data_ptr() for name, tensor in contiguous.items()}
    sizes = {"kind": score.kind, "width": queries.shape[-1], "hidden": len(score.h)}
    numbers = {"beta": score.beta, "scale": score.scale}
    call = HistoryAttention(**sizes, entries=len(entries.item_offsets) - 1, **numbers, **pointers)
    if not library.heed_history_attention(ctypes.addressof(call)):
        raise MemoryError


def history_logits(
    entries: HistoryEntries,
    score: HistoryScore,
    keys: Float[Tensor, "key width"],
    queries: Float[Tensor, "row width"],
    bias: Float[Tensor, "row"],
) -> Float[Tensor, "row"]:
    """Return `bias + p . sum_j a_j q_j` of every target, without its own item. No gradients."""
    logits = torch.empty_like(bias)
    _run_kernel(entries, score, keys.detach(), queries.detach(), bias=bias.detach(), logits=logits)
    return logits


class _HistoryLoss(Function):
    """Compute the gradients in the forward pass, while their operands are in the processor's cache."""

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
        entries: HistoryEntries,
        score: HistoryScore,
    ) -> Tensor:
        logits, loss, dlogits = bias.new_empty(3, len(bias))
        gradients = [torch.empty_like(keys), torch.empty_like(queries), dlogits]
        gradients += [torch.zeros_like(tensor) for tensor in (w, b, h)]
        names = ("dkeys", "dqueries", "dlogits", "dw", "db", "dh")
        _run_kernel(
            entries,
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
    entries: HistoryEntries,
    score: HistoryScore,
    keys: Float[Tensor, "key width"],
    queries: Float[Tensor, "row width"],
    bias: Float[Tensor, "row"],
    labels: Float[Tensor, "row"],
) -> Float[Tensor, ""]:
    """Return the summed binary cross-entropy of all targets; `backward()` may run only once."""
    tensors = (keys.contiguous(), queries.contiguous(), bias, score.w, score.b, score.h)
    total: Tensor = _HistoryLoss.apply(*tensors, labels, entries, score)  # type: ignore[no-untyped-call]
    return total

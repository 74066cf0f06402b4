"""Attention over histories of items (He 2018, NAIS) in one call into C.

An entry is one history and the targets that attend to its items. `models/recommender.py` computes the same entry by
entry with the attention package; the tests compare both. The functions need the C kernels and float32 tensors on the
CPU (`supports`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd import Function

from heedful.errors import ShapeError
from heedful.kernels import loader
from heedful.kernels.guards import admits, check_indices, check_offsets
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
MAX_ITEMS = 2**31  # the kernel compares items as 32-bit integers


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
    tensors = {"keys": keys, "queries": queries, **parameters, **more}
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items() if tensor is not None}
    _check_entries(entries, len(keys), len(queries))
    _check_tensors(score, contiguous)
    pointers = {name: tensor.data_ptr() for name, tensor in (*contiguous.items(), *entries._asdict().items())}
    sizes = {"kind": score.kind, "width": queries.shape[-1], "hidden": len(score.h)}
    numbers = {"beta": score.beta, "scale": score.scale}
    call = HistoryAttention(**sizes, entries=len(entries.item_offsets) - 1, **numbers, **pointers)
    if not library.heed_history_attention(ctypes.addressof(call)):
        raise MemoryError(f"no memory for attention over {len(keys)} items of width {queries.shape[-1]}")


def _check_entries(entries: HistoryEntries, n_items: int, n_targets: int) -> None:
    check_indices(entries.items, (n_items,), MAX_ITEMS, "item")
    check_indices(entries.targets, (n_targets,), MAX_ITEMS, "item")
    check_offsets(entries.item_offsets, n_items, "item_offsets")
    check_offsets(entries.target_offsets, n_targets, "target_offsets")
    if len(entries.item_offsets) != len(entries.target_offsets):
        counts = f"{len(entries.item_offsets) - 1} histories, but {len(entries.target_offsets) - 1} sets of targets"
        raise ShapeError(f"there are {counts}")


def _check_tensors(score: HistoryScore, tensors: Mapping[str, Tensor]) -> None:
    (items, width), rows, hidden = tensors["keys"].shape, len(tensors["queries"]), len(score.h)
    columns = {PROD: (hidden, width), CONCAT: (hidden, 2 * width), DOT: tuple(score.w.shape)}[score.kind]
    shapes = {"keys": (items, width), "queries": (rows, width), "w": columns, "b": (hidden,), "h": (hidden,)}
    for name, tensor in tensors.items():
        shape = shapes.get(name.removeprefix("d"), (rows,))  # a gradient is shaped like its tensor
        if not admits(shape, tensor):
            raise ShapeError(f"attention over histories needs {name} in float32 on the CPU, got {tensor.dtype}")
    if score.kind == DOT and hidden:
        raise ShapeError(f"the dot product has no hidden layer, got one of {hidden} units")


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

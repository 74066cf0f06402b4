"""The kernels that can replace the plain PyTorch code of `Attention.forward`, and the choice among them.

`KERNELS` are tried in order; the first whose predicate accepts the call runs it. A call that no kernel supports is
computed in `Attention.forward` itself; the tests compare every kernel with that code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from heedful import kernels
from heedful.attention.heads import Heads
from heedful.attention.hooks import Detail
from heedful.attention.normalizers.base import Normalizer
from heedful.attention.normalizers.softmax import Softmax
from heedful.attention.placements.base import Placement
from heedful.attention.placements.global_ import Global
from heedful.attention.scores.additive import Additive
from heedful.attention.scores.base import Score
from heedful.attention.scores.dot import Dot
from heedful.attention.scores.general import General
from heedful.attention.scores.scaled_dot import ScaledDot
from heedful.attention.types import Memory


@runtime_checkable
class Mechanism(Protocol):
    """The attributes of an `Attention` that dispatch reads; importing the class would be circular."""

    score: Score
    normalizer: Normalizer
    placement: Placement
    heads: Heads | None
    dropout: float
    training: bool


@dataclass(frozen=True, slots=True)
class AttentionCall:
    """One call of an attention, with the query split into heads and the masks combined."""

    mechanism: Mechanism
    query: Float[Tensor, "batch query head inner"]
    memory: Memory
    keep: Bool[Tensor, "batch key"]
    allowed: Bool[Tensor, "batch query 1 key"]
    masked_per_query: bool  # whether `allowed` forbids more than `keep` does
    detail: Detail
    has_edit: bool  # whether the hooks may override the weights


KernelOutput = tuple[Float[Tensor, "batch query head width"], Float[Tensor, "batch query head key"] | None]


class Kernel(NamedTuple):
    """A kernel: whether it supports a call, and a function that returns the contexts and, if available, the weights."""

    name: str
    supports: Callable[[AttentionCall], bool]
    run: Callable[[AttentionCall], KernelOutput]


def find_kernel(call: AttentionCall) -> Kernel | None:
    """Return the first kernel that supports a call; None if `Attention.forward` has to compute it in PyTorch."""
    return next((kernel for kernel in KERNELS if kernel.supports(call)), None)


# Predicates on mechanisms. Types are compared exactly, because a subclass may compute something else.


def is_softmax_over_all_keys(mechanism: Mechanism) -> bool:
    """Return whether the weights are a plain softmax: no other normalizer or placement, no dropout now."""
    plain = type(mechanism.normalizer) is Softmax and type(mechanism.placement) is Global
    return plain and not kernels.is_dropout_active(mechanism.dropout, mechanism.training)


def is_plain_additive(mechanism: Mechanism) -> bool:
    """Return whether this is Bahdanau's attention: additive scores, plain softmax, no head projections."""
    return type(mechanism.score) is Additive and mechanism.heads is None and is_softmax_over_all_keys(mechanism)


def is_plain_dot(mechanism: Mechanism) -> bool:
    """Return whether the weights are a plain softmax over (possibly projected) dot products."""
    return type(mechanism.score) in (Dot, ScaledDot, General) and is_softmax_over_all_keys(mechanism)


def is_plain(mechanism: Mechanism) -> bool:
    """Return whether this is additive or dot-product attention with a plain softmax and no head projections."""
    return mechanism.heads is None and (is_plain_dot(mechanism) or is_plain_additive(mechanism))


# torch's fused kernel


def _supports_torch(call: AttentionCall) -> bool:
    """Torch's kernel computes softmax over dot products; it does not return the weights.

    Half precision on the CPU is excluded: there the kernel uses instructions that some virtual machines report but do
    not implement, which kills the process. Dropout on the CPU is faster in the C kernel.
    """
    mechanism = call.mechanism
    plain = (
        type(mechanism.score) in (Dot, ScaledDot)
        and type(mechanism.normalizer) is Softmax
        and type(mechanism.placement) is Global
    )
    if not plain or call.detail is not Detail.NONE or call.has_edit:
        return False
    if call.query.device.type != "cpu":
        return True
    active = kernels.is_dropout_active(mechanism.dropout, mechanism.training)
    has_faster_dropout = active and kernels.supports(call.query)
    return kernels.is_full_precision(call.query) and not has_faster_dropout


def _run_torch(call: AttentionCall) -> KernelOutput:
    mechanism, memory = call.mechanism, call.memory
    assert isinstance(mechanism.score, Dot)
    context = F.scaled_dot_product_attention(
        call.query.transpose(1, 2),
        memory.keys.transpose(1, 2),
        memory.values.transpose(1, 2),
        attn_mask=call.allowed.transpose(1, 2),
        dropout_p=mechanism.dropout if mechanism.training else 0.0,
        scale=mechanism.score.scale,
    )
    return context.transpose(1, 2), None


# C kernels: they have no backward pass and return weights, but no scores


def _supports_c(call: AttentionCall) -> bool:
    needs_scores = call.detail is Detail.FULL or call.has_edit
    return not needs_scores and kernels.supports(call.query, call.memory.keys, gradients=False)


def _supports_additive(call: AttentionCall) -> bool:
    """The additive kernel takes one mask for all queries of a sentence."""
    return is_plain_additive(call.mechanism) and not call.masked_per_query and _supports_c(call)


def _run_additive(call: AttentionCall) -> KernelOutput:
    score, memory = call.mechanism.score, call.memory
    assert isinstance(score, Additive)
    batch, queries = call.query.shape[:2]
    keys, values = memory.keys[:, :, 0].contiguous(), memory.values[:, :, 0].contiguous()
    weights = call.query.new_empty(batch * queries, keys.shape[1])
    context = call.query.new_empty(batch * queries, values.shape[2])
    query = score.query(call.query.flatten(end_dim=2))
    kernels.additive_attention(query, keys, score.v, call.keep.contiguous(), values, weights, context)
    return context.view(batch, queries, 1, -1), weights.view(batch, queries, 1, -1)


def _supports_dot(call: AttentionCall) -> bool:
    return is_plain_dot(call.mechanism) and _supports_c(call)


def _run_dot(call: AttentionCall) -> KernelOutput:
    score, memory = call.mechanism.score, call.memory
    assert isinstance(score, Dot | General)
    return kernels.dot_attention(call.query, memory.keys, memory.values, call.allowed[:, :, 0], score.scale)


KERNELS = (
    Kernel("torch fused", _supports_torch, _run_torch),
    Kernel("C additive", _supports_additive, _run_additive),
    Kernel("C dot", _supports_dot, _run_dot),
)

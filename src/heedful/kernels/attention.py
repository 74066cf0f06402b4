"""Attention with softmax weights over padded sources: additive scores and dot products."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.kernels import loader
from heedful.kernels.guards import accepts


def additive_attention(
    query: Float[Tensor, "row hidden"],
    keys: Float[Tensor, "batch key hidden"],
    v: Float[Tensor, "hidden"],
    keep: Bool[Tensor, "batch key"],
    values: Float[Tensor, "batch key width"],
    weights: Float[Tensor, "row key"],
    context: Float[Tensor, "row width"],
) -> None:
    """Compute `softmax(v' tanh(q + k_i))` over the keys that `keep` allows into `weights`, and the context.

    Query and keys are already projected. The rows of a sentence (its beam) are consecutive.
    """
    library = loader.library()
    beam = len(query) // len(keys) if len(keys) else 1
    if library is not None and accepts(query, keys, values):
        sentence = torch.arange(len(keys)).repeat_interleave(beam) if beam > 1 else None
        library.heed_additive_attention(
            query.data_ptr(), keys.data_ptr(), v.data_ptr(), keep.data_ptr(), values.data_ptr(),
            weights.data_ptr(), context.data_ptr(), len(query),
            None if sentence is None else sentence.data_ptr(), keys.shape[1], keys.shape[2], values.shape[2],
        )  # fmt: skip
        return
    rows = query.view(len(keys), beam, 1, -1)
    scores = (torch.tanh(rows + keys[:, None]) @ v).masked_fill(~keep[:, None], float("-inf"))
    softmax = scores.softmax(dim=-1).nan_to_num(0.0)  # NaN: a sentence without any key
    weights.copy_(softmax.view(weights.shape))
    context.copy_((softmax @ values).view(context.shape))


def additive_attention_backward(  # noqa: PLR0913 - inputs, outputs and gradients
    query: Float[Tensor, "batch hidden"],
    keys: Float[Tensor, "batch key hidden"],
    v: Float[Tensor, "hidden"],
    keep: Bool[Tensor, "batch key"],
    values: Float[Tensor, "batch key width"],
    weights: Float[Tensor, "batch key"],
    dcontext: Float[Tensor, "batch width"],
    dquery: Float[Tensor, "batch hidden"],
    dkeys: Float[Tensor, "batch key hidden"],
    dvalues: Float[Tensor, "batch key width"],
    dv: Float[Tensor, "batch hidden"],
    dweights: Float[Tensor, "batch key"] | None = None,
) -> None:
    """Backward pass of `additive_attention` with one row per sentence.

    `dkeys`, `dvalues` and `dv` are accumulated. `dweights` is the gradient of the returned weights.
    """
    library = loader.library()
    if library is not None and accepts(query, keys, values, dcontext):
        library.heed_additive_attention_backward(
            query.data_ptr(), keys.data_ptr(), v.data_ptr(), keep.data_ptr(), values.data_ptr(),
            weights.data_ptr(), dcontext.data_ptr(), None if dweights is None else dweights.data_ptr(),
            dquery.data_ptr(), dkeys.data_ptr(), dvalues.data_ptr(), dv.data_ptr(), *keys.shape,
            values.shape[2],
        )  # fmt: skip
        return
    dw = torch.einsum("bd,bkd->bk", dcontext, values)
    dw = dw if dweights is None else dw + dweights
    dscores = weights * (dw - (weights * dw).sum(dim=1, keepdim=True)) * keep
    dvalues += weights[..., None] * dcontext[:, None]
    t = torch.tanh(query[:, None] + keys)
    dsum = dscores[..., None] * v * (1 - t * t)
    dquery.copy_(dsum.sum(dim=1))
    dkeys += dsum
    dv += (dscores[..., None] * t).sum(dim=1)


def dot_attention(
    query: Float[Tensor, "batch query head inner"],
    keys: Float[Tensor, "batch key head inner"],
    values: Float[Tensor, "batch key head width"],
    allowed: Bool[Tensor, "batch query key"],
    scale: float,
) -> tuple[Float[Tensor, "batch query head width"], Float[Tensor, "batch query head key"]]:
    """Return the context and the weights `softmax(scale q . k_i)` over the allowed keys."""
    library = loader.library()
    batch, queries, heads, inner = query.shape
    count, width = keys.shape[1], values.shape[-1]
    if library is not None and accepts(query, keys, values):
        query, keys, values, allowed = (t.contiguous() for t in (query, keys, values, allowed))
        weights = query.new_empty(batch, queries, heads, count)
        context = query.new_empty(batch, queries, heads, width)
        library.heed_dot_attention(
            query.data_ptr(), keys.data_ptr(), values.data_ptr(), allowed.data_ptr(), scale,
            weights.data_ptr(), context.data_ptr(), batch, queries, heads, count, inner, width,
        )  # fmt: skip
        return context, weights
    scores = scale * torch.einsum("bqhd,bkhd->bqhk", query, keys)
    weights = scores.masked_fill(~allowed[:, :, None], float("-inf")).softmax(dim=-1).nan_to_num(0.0)
    return torch.einsum("bqhk,bkhd->bqhd", weights, values), weights

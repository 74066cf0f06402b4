"""Attention with softmax weights over padded sources: additive scores and dot products."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.errors import ShapeError
from heedful.kernels import loader
from heedful.kernels.guards import accepts, admits, admits_mask


def masked_softmax(scores: Float[Tensor, "*rows key"], keep: Bool[Tensor, "*#rows key"]) -> Float[Tensor, "*rows key"]:
    """Return the softmax over the keys that `keep` allows; the others get 0, as does a row without any allowed key."""
    softmax = scores.masked_fill(~keep, float("-inf")).softmax(dim=-1)
    return softmax.masked_fill(~keep, 0.0)


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
    batch, count, hidden = keys.shape
    rows, width = len(query), values.shape[2]
    beam = rows // batch if batch else 1
    if rows != beam * batch:
        raise ShapeError(f"{rows} queries cannot be divided among {batch} sentences")
    if (
        library is not None
        and admits((rows, hidden), query)
        and admits((batch, count, hidden), keys)
        and admits((hidden,), v)
        and admits_mask((batch, count), keep)
        and admits((batch, count, width), values)
        and admits((rows, count), weights)
        and admits((rows, width), context)
    ):
        sentence = torch.arange(batch).repeat_interleave(beam) if beam > 1 else None
        library.heed_additive_attention(
            query.data_ptr(), keys.data_ptr(), v.data_ptr(), keep.data_ptr(), values.data_ptr(),
            weights.data_ptr(), context.data_ptr(), rows,
            None if sentence is None else sentence.data_ptr(), count, hidden, width,
        )  # fmt: skip
        return
    sums = query.view(batch, beam, 1, hidden) + keys[:, None]
    softmax = masked_softmax(torch.tanh(sums) @ v, keep[:, None])
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
    batch, count, hidden = keys.shape
    width = values.shape[2]
    if (
        library is not None
        and admits((batch, hidden), query, dquery, dv)
        and admits((batch, count, hidden), keys, dkeys)
        and admits((hidden,), v)
        and admits_mask((batch, count), keep)
        and admits((batch, count, width), values, dvalues)
        and admits((batch, count), weights, *(() if dweights is None else (dweights,)))
        and admits((batch, width), dcontext)
    ):
        workspace = torch.empty_like(weights)
        library.heed_additive_attention_backward(
            query.data_ptr(), keys.data_ptr(), v.data_ptr(), keep.data_ptr(), values.data_ptr(),
            weights.data_ptr(), dcontext.data_ptr(), None if dweights is None else dweights.data_ptr(),
            dquery.data_ptr(), dkeys.data_ptr(), dvalues.data_ptr(), dv.data_ptr(), workspace.data_ptr(),
            batch, count, hidden, width,
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
    if (
        library is not None
        and admits((batch, queries, heads, inner), query)
        and admits((batch, count, heads, inner), keys)
        and admits((batch, count, heads, width), values)
        and admits_mask((batch, queries, count), allowed)
    ):
        weights = query.new_empty(batch, queries, heads, count)
        context = query.new_empty(batch, queries, heads, width)
        library.heed_dot_attention(
            query.data_ptr(), keys.data_ptr(), values.data_ptr(), allowed.data_ptr(), scale,
            weights.data_ptr(), context.data_ptr(), batch, queries, heads, count, inner, width,
        )  # fmt: skip
        return context, weights
    scores = scale * torch.einsum("bqhd,bkhd->bqhk", query, keys)
    weights = masked_softmax(scores, allowed[:, :, None])
    return torch.einsum("bqhk,bkhd->bqhd", weights, values), weights

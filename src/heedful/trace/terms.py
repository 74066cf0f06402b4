"""The terms of scores, read-outs and logits: the numbers with which a page fills in the formulas of a step.

A trace holds them as tensors with fixed names. Those of a score are complete, so that every score can be recomputed
from them; of a read-out and of a logit only the largest terms are kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.attention import (
    Additive,
    Attention,
    Concat,
    ConcatRelu,
    Dot,
    General,
    Location,
    Memory,
    ProdRelu,
    ScaledDot,
)
from heedful.attention.scores.additive import CoverageAdditive
from heedful.layers.readout import ReadOut
from heedful.trace.schema import PackedTensor

N_TERMS = 3  # per sum
OUTPUT_TERMS = "output/terms"  # tensor (T, term, 2): index of a feature, its weight in the output token's logit
OUTPUT_BIAS = "output/bias"  # tensor (T,): bias of the output token's logit
OUTPUT_LOGIT = "output/logit"  # tensor (T,): the logit itself, where the softmax has two levels and so no common sum
OUTPUT_LOG_SUM = "output/log_sum"  # tensor (T,): log of the sum of all exponentiated logits
READ_OUT_TERMS = "read_out/terms"  # tensor (T, term, 3): index of an input, its weight, its value
READ_OUT_SUM = "read_out/sum"  # tensor (T,): the sum of all terms, before the activation


def find_attention(model: nn.Module, site: str) -> Attention | None:
    """Return the attention module of a site."""
    modules = (module for module in model.modules() if isinstance(module, Attention))
    return next((module for module in modules if module.site.id == site), None)


def score_terms(
    attention: Attention, query: Float[Tensor, "1 query width"], memory: Memory
) -> dict[str, Float[Tensor, "..."]]:
    """Return what the score of a site combines, by name; empty if the query and the keys are all there is.

    `score_query` (query, head, inner) and `score_keys` (key, head, inner) are multiplied, or added before
    `score_vector` (inner,) weighs the activated sums. `score_coverage` (inner,) weighs coverage; `score_matrix` and
    `score_bias` are applied to the products of query and key.
    """
    split = query[:, :, None] if attention.heads is None else attention.heads.split_query(query)
    score = attention.score
    if isinstance(score, Additive):
        terms = {"score_query": score.query(split)[0], "score_keys": memory.keys[0], "score_vector": score.v}
        return {**terms, "score_coverage": score.w_c} if isinstance(score, CoverageAdditive) else terms
    if isinstance(score, Concat | ConcatRelu):
        projected = split @ score.both.weight[:, : score.query_size].T
        vector = score.v if isinstance(score, Concat) else score.h
        return {"score_query": projected[0], "score_keys": memory.keys[0], "score_vector": vector}
    if isinstance(score, ProdRelu):
        return {
            "score_query": split[0],
            "score_keys": memory.keys[0],
            "score_matrix": score.product.weight,
            "score_bias": score.product.bias,
            "score_vector": score.h,
        }
    if isinstance(score, Location):
        rows = score.rows.weight[: memory.keys.shape[1]]
        rows = nn.functional.pad(rows, (0, 0, 0, memory.keys.shape[1] - len(rows)))
        return {"score_query": split[0], "score_keys": rows[:, None].expand(-1, split.shape[2], -1)}
    if isinstance(score, General) or (isinstance(score, Dot | ScaledDot) and attention.heads is not None):
        return {"score_query": split[0], "score_keys": memory.keys[0]}
    return {}


def pack_score_terms(attention: Attention, query: Tensor, memory: Memory) -> dict[str, PackedTensor]:
    """Return `score_terms` as tensors of a trace, named `SITE/NAME`."""
    with torch.no_grad():
        terms = score_terms(attention, query, memory)
    dims = {"score_query": ("Q", "H", "n"), "score_keys": ("K", "H", "n"), "score_matrix": ("n", "m")}
    return {
        f"{attention.site.id}/{name}": PackedTensor.pack(tensor.detach().numpy(), *dims.get(name, ("n",)))
        for name, tensor in terms.items()
    }


def output_terms(
    layer: nn.Module,
    features: Float[Tensor, "step width"],
    tokens: Sequence[int],
    logits: Float[Tensor, "step vocab"],
) -> dict[str, PackedTensor]:
    """Return the largest terms of the logit of each output token, its bias, and the log of the sum of all.

    `layer` has a `weight` and a `bias`, and its logits are those of the softmax.
    """
    weight, bias = layer.get_parameter("weight")[list(tokens)], layer.get_parameter("bias")[list(tokens)]
    best = (weight * features).abs().topk(min(N_TERMS, weight.shape[-1]), dim=-1).indices
    terms = torch.stack([best.to(weight.dtype), weight.gather(-1, best)], dim=-1)
    return {
        OUTPUT_TERMS: PackedTensor.pack(terms.numpy(), "T", "term", "n"),
        OUTPUT_BIAS: PackedTensor.pack(bias.numpy(), "T"),
        OUTPUT_LOG_SUM: PackedTensor.pack(logits.logsumexp(dim=-1).numpy(), "T"),
    }


def two_level_output_terms(
    layer: nn.Module, features: Float[Tensor, "step width"], tokens: Sequence[int]
) -> dict[str, PackedTensor]:
    """Return the terms of a two-level softmax, with the logit of each output token in its level."""
    weight, bias = layer.get_parameter("weight")[list(tokens)], layer.get_parameter("bias")[list(tokens)]
    logits = (weight * features).sum(dim=-1) + bias
    tensors = output_terms(layer, features, tokens, logits[:, None])
    del tensors[OUTPUT_LOG_SUM]
    return {**tensors, OUTPUT_LOGIT: PackedTensor.pack(logits.numpy(), "T")}


def read_out_terms(
    read_out: ReadOut,
    inputs: Float[Tensor, "step size"],
    word: Float[Tensor, "step word"],
    units: Sequence[int],
) -> dict[str, PackedTensor]:
    """Return the largest terms of one unit of the features per step, before its activation; none if it has no matrix.

    `inputs` are the state and the context, concatenated. The embedding of the last word is a further input (`deep`,
    `maxout`) or added to the result (`added`), where it counts as an input with weight 1.
    """
    if read_out.kind == "linear":
        return {}
    weight, bias = read_out.projection.weight, read_out.projection.bias
    if read_out.kind in ("deep", "maxout"):
        inputs = torch.cat([inputs, word], dim=-1)
    rows = torch.tensor(list(units))
    if read_out.kind == "maxout":  # of the two units of a pair, the larger one
        both = torch.stack([2 * rows, 2 * rows + 1])
        sums = (weight[both] * inputs).sum(dim=-1) + bias[both]
        rows = both.gather(0, sums.argmax(dim=0, keepdim=True))[0]
    row_weights = weight[rows]
    if read_out.kind == "added":
        units_of_word = nn.functional.one_hot(rows, word.shape[-1]).to(weight.dtype)
        row_weights, inputs = torch.cat([row_weights, units_of_word], dim=-1), torch.cat([inputs, word], dim=-1)
    products = row_weights * inputs
    best = products.abs().topk(min(N_TERMS, products.shape[-1]), dim=-1).indices
    terms = torch.stack([best.to(weight.dtype), row_weights.gather(-1, best), inputs.gather(-1, best)], dim=-1)
    total = products.sum(dim=-1)
    if read_out.kind != "tanh":  # has no bias
        total = total + bias[rows]
    return {
        READ_OUT_TERMS: PackedTensor.pack(terms.detach().numpy(), "T", "term", "n"),
        READ_OUT_SUM: PackedTensor.pack(total.detach().numpy(), "T"),
    }


def largest_unit(tensors: dict[str, PackedTensor]) -> list[int]:
    """Return the feature with the largest term of each step, from the tensors of `output_terms`."""
    return [int(index) for index in tensors[OUTPUT_TERMS].array()[:, 0, 0]]

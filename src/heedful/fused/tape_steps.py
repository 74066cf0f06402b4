"""All steps of an LSTMN layer as one operation with its own backward pass.

Only the recurrence itself runs step by step: the products of the inputs with the query and gate weights are computed
for all steps beforehand, and in the backward pass the gradient of each weight is one matrix product over all steps. The
tape is allocated for all steps; the key of a slot is projected when it is written. One matrix product projects the
summary to the gates and to the next query. `LSTMNCell` computes the same in plain PyTorch; the tests compare both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd import Function

from heedful.attention import Detail, Hooks
from heedful.fused.buffers import take_buffers
from heedful.kernels import (
    additive_attention,
    additive_attention_backward,
    is_full_precision,
    lstm_cell,
    lstm_cell_backward,
)


def supports(inputs: Tensor, keep: Bool[Tensor, "batch step"], hooks: Hooks, site: str) -> bool:
    """Return whether `tape_steps` may run: no hook records scores or edits weights, and padding comes last."""
    records_weights_only = hooks.edit is None and hooks.detail_at(site) is not Detail.FULL
    return records_weights_only and is_full_precision(inputs) and bool((keep[:, 1:] <= keep[:, :-1]).all())


class InitialTape(NamedTuple):
    """The tape before the first step.

    Only `keys` receive gradients: with recency, a trained weight projects the position of the zero slot.
    """

    keys: Float[Tensor, "batch slot score"]
    values: Float[Tensor, "batch slot both"]  # hidden state and cell of each slot, concatenated
    keep: Bool[Tensor, "batch slot"]


class TapeWeights(NamedTuple):
    """The weights of the recurrence.

    `summary` projects the summary to the gates and, with recall, in its last rows to the next query. `key_offset` is
    added to the key of each new slot.
    """

    summary: Float[Tensor, "rows hidden"]
    key: Float[Tensor, "score hidden"]
    v: Float[Tensor, "score"]
    key_offset: Float[Tensor, "step score"]


@dataclass
class _Buffers:
    """Tensors of all steps; in the backward pass gradients replace `queries` and `gates`."""

    weights: TapeWeights
    first_slot: int  # the number of slots before the first step
    queries: Tensor  # (step, batch, score)
    gates: Tensor  # (step, batch, gates)
    allowed: Tensor  # (step, batch, slot)
    keys: Tensor  # (batch, slot, score)
    values: Tensor  # (batch, slot, both)
    attention: Tensor  # (step, batch, slot): the attention weights
    summaries: Tensor  # (step, batch, both): of hidden states and of cells
    previous_cells: Tensor  # (step, batch, hidden): the summaries of cells, contiguous
    tanh_cells: Tensor  # (step, batch, hidden)


class _TapeSteps(Function):
    @staticmethod
    def forward(
        ctx: Any,
        keys: Tensor,
        values: Tensor,
        slot_keep: Tensor,
        keep: Tensor,
        queries: Tensor,
        gates: Tensor,
        *weights: Tensor,
    ) -> tuple[Tensor, ...]:
        w = TapeWeights(*weights)
        b = _allocate(InitialTape(keys, values, slot_keep), keep, queries, gates, w)
        hidden = w.summary.shape[1]
        recall = len(w.summary) > 4 * hidden
        outputs, cells = b.previous_cells.new_empty(2, *b.previous_cells.shape)
        projected = b.keys.new_zeros(len(b.keys), len(w.summary))
        for t in range(len(outputs)):
            if recall:
                b.queries[t] += projected[:, 4 * hidden :]
            additive_attention(b.queries[t], b.keys, w.v, b.allowed[t], b.values, b.attention[t], b.summaries[t])
            projected = b.summaries[t, :, :hidden] @ w.summary.T
            b.gates[t] += projected[:, : 4 * hidden]
            b.previous_cells[t] = b.summaries[t, :, hidden:]
            lstm_cell(b.gates[t], b.previous_cells[t], outputs[t], cells[t], b.tanh_cells[t])
            slot = b.first_slot + t
            b.values[:, slot, :hidden], b.values[:, slot, hidden:] = outputs[t], cells[t]
            torch.mm(outputs[t], w.key.T, out=b.keys[:, slot])
            b.keys[:, slot] += w.key_offset[t]
        ctx.buffers = b
        # Detached views: an autograd node that holds its own outputs is never freed.
        rest = tuple(x.detach() for x in (b.attention, b.summaries, b.keys, b.values))
        ctx.mark_non_differentiable(*rest)
        return outputs, *rest

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        b: _Buffers = take_buffers(ctx)
        w, hidden, first = b.weights, b.weights.summary.shape[1], b.first_slot
        dkeys, dvalues = torch.zeros_like(b.keys), torch.zeros_like(b.values)
        dv = b.keys.new_zeros(len(b.keys), b.keys.shape[2])
        dprojected = b.gates.new_empty(*b.gates.shape[:2], len(w.summary))
        dquery = torch.zeros_like(dv)  # of the step after t
        for t in reversed(range(len(b.queries))):
            slot = first + t
            dh = torch.addmm(grads[0][t] + dvalues[:, slot, :hidden], dkeys[:, slot], w.key)
            dc = dvalues[:, slot, hidden:].contiguous()
            lstm_cell_backward(b.gates[t], b.previous_cells[t], b.tanh_cells[t], dh, dc)
            dprojected[t, :, : 4 * hidden] = b.gates[t]
            dprojected[t, :, 4 * hidden :] = dquery[:, : len(w.summary) - 4 * hidden]
            dsummary = torch.cat([dprojected[t] @ w.summary, dc], dim=-1)
            dquery = torch.empty_like(dquery)
            additive_attention_backward(
                b.queries[t], b.keys, w.v, b.allowed[t], b.values, b.attention[t], dsummary,
                dquery, dkeys, dvalues, dv,
            )  # fmt: skip
            b.queries[t] = dquery
        summaries = b.summaries[:, :, :hidden].flatten(end_dim=1)
        dsummary_weight = dprojected.flatten(end_dim=1).T @ summaries
        outputs = b.values[:, first:, :hidden].flatten(end_dim=1)
        dkey_weight = dkeys[:, first:].flatten(end_dim=1).T @ outputs
        dkey_offset = dkeys[:, first:].sum(dim=0)
        dweights = dsummary_weight, dkey_weight, dv.sum(dim=0), dkey_offset
        return dkeys[:, :first], None, None, None, b.queries, b.gates, *dweights


def _allocate(tape: InitialTape, keep: Tensor, queries: Tensor, gates: Tensor, weights: TapeWeights) -> _Buffers:
    """Allocate the buffers of all steps, and copy the initial tape into them."""
    steps, batch, score = queries.shape
    hidden, first = weights.summary.shape[1], tape.keep.shape[1]
    slots = first + steps
    keys, values = queries.new_zeros(batch, slots, score), queries.new_zeros(batch, slots, 2 * hidden)
    keys[:, :first], values[:, :first] = tape.keys, tape.values
    step = torch.arange(steps, device=keep.device)[:, None]
    written = torch.arange(slots, device=keep.device) < first + step  # (step, slot)
    allowed = torch.cat([tape.keep, keep], dim=1)[None] & written[:, None]
    return _Buffers(
        weights,
        first,
        queries.clone(memory_format=torch.contiguous_format),
        gates.clone(memory_format=torch.contiguous_format),
        allowed.contiguous(),
        keys,
        values,
        queries.new_empty(steps, batch, slots),
        queries.new_empty(steps, batch, 2 * hidden),
        *queries.new_empty(2, steps, batch, hidden),
    )


class TapeOutput(NamedTuple):
    """The output of all steps; only `hidden` has gradients. The tape has the slots of all steps."""

    hidden: Float[Tensor, "batch step hidden"]
    weights: Float[Tensor, "batch step slot"]
    summaries: Float[Tensor, "batch step both"]  # of hidden states and of cells
    keys: Float[Tensor, "batch slot score"]
    values: Float[Tensor, "batch slot both"]


def tape_steps(
    tape: InitialTape,
    keep: Bool[Tensor, "batch step"],
    queries: Float[Tensor, "batch step score"],
    gates: Float[Tensor, "batch step gates"],
    weights: TapeWeights,
) -> TapeOutput:
    """Run all steps of an LSTMN layer.

    `queries` and `gates` (in the order input, forget, candidate, output) are the inputs times their weights.
    """
    hidden, attention, summaries, keys, values = _TapeSteps.apply(  # type: ignore[no-untyped-call]
        *tape, keep, queries.transpose(0, 1), gates.transpose(0, 1), *weights
    )
    hidden, attention, summaries = (x.transpose(0, 1) for x in (hidden, attention, summaries))
    return TapeOutput(hidden, attention, summaries, keys, values)

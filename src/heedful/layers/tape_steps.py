"""All steps of an LSTMN's layer as one operation with its own way back.

A step must wait for the one before, but not everything in it must: what words bring to the questions and to
the gates is computed for all steps before, and on the way back each weight's gradient is one product over all
steps. The tape is laid out once for all slots to come; a slot's key is projected when it is written. What was
read goes to the gates and to the next question by one product. `LSTMNCell` says the same a step at a time,
and the tests hold the two equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd import Function

from heedful.native import additive, additive_back, lstm, lstm_back


class Begun(NamedTuple):
    """What there is before the first step; gradients go back into keys alone (a zero slot's has a place)."""

    keys: Float[Tensor, "batch slot score"]
    values: Float[Tensor, "batch slot both"]  # hidden states and cells side by side
    keep: Bool[Tensor, "batch slot"]


class Weights(NamedTuple):
    """`past`: what was read brings to the gates and, below them, to the next question (unless no recall)."""

    past: Float[Tensor, "rows hidden"]
    key: Float[Tensor, "score hidden"]
    v: Float[Tensor, "score"]
    place: Float[Tensor, "step score"]  # what a slot's key has of its place


@dataclass
class _Parts:
    """What the way back needs of the way forth. Gradients take the place of `query` and `gates`."""

    w: Weights
    slots: int  # before the first step
    query: Tensor  # (step, batch, score)
    gates: Tensor  # (step, batch, gates)
    open: Tensor  # (step, batch, slot)
    keys: Tensor  # (batch, slot, score)
    values: Tensor  # (batch, slot, both)
    weights: Tensor  # (step, batch, slot)
    context: Tensor  # (step, batch, both): summaries of hidden states and cells side by side
    before: Tensor  # (step, batch, hidden): the summaries of cells
    shown: Tensor  # (step, batch, hidden)


class _Tape(Function):
    @staticmethod
    def forward(
        ctx: Any,
        keys: Tensor,
        values: Tensor,
        begun: Tensor,
        keep: Tensor,
        query: Tensor,
        gates: Tensor,
        *weights: Tensor,
    ) -> tuple[Tensor, ...]:
        past, key, v, place = weights
        p = _laid_out(Begun(keys, values, begun), keep, query, gates, Weights(past, key, v, place))
        hidden = past.shape[1]
        recall = len(past) > 4 * hidden
        out, cell = p.before.new_empty(2, *p.before.shape)
        brought = p.keys.new_zeros(len(p.keys), len(past))
        for t in range(len(out)):
            if recall:
                p.query[t] += brought[:, 4 * hidden :]
            additive(p.query[t], p.keys, v, p.open[t], p.values, p.weights[t], p.context[t])
            brought = p.context[t, :, :hidden] @ past.T
            p.gates[t] += brought[:, : 4 * hidden]
            p.before[t] = p.context[t, :, hidden:]
            lstm(p.gates[t], p.before[t], out[t], cell[t], p.shown[t])
            slot = p.slots + t
            p.values[:, slot, :hidden], p.values[:, slot, hidden:] = out[t], cell[t]
            torch.mm(out[t], key.T, out=p.keys[:, slot])
            p.keys[:, slot] += place[t]
        ctx.parts = p
        # other handles on the same numbers: a node that held its own outputs would never be freed
        rest = tuple(x.detach() for x in (p.weights, p.context, p.keys, p.values))
        ctx.mark_non_differentiable(*rest)
        return out, *rest

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        p: _Parts = ctx.parts
        ctx.parts = None  # gradients take its place: the way back can be gone once
        if p is None:
            raise RuntimeError("the way back through these steps can be gone once")
        w, hidden = p.w, p.w.past.shape[1]
        into_keys, into_values = torch.zeros_like(p.keys), torch.zeros_like(p.values)
        into_v = p.keys.new_zeros(len(p.keys), p.keys.shape[2])
        into_past = p.gates.new_empty(*p.gates.shape[:2], len(w.past))
        asked = torch.zeros_like(into_v)  # of what the summary brought to the next question
        for t in reversed(range(len(p.query))):
            slot = p.slots + t
            dh = torch.addmm(grads[0][t] + into_values[:, slot, :hidden], into_keys[:, slot], w.key)
            dc = into_values[:, slot, hidden:].contiguous()
            lstm_back(p.gates[t], p.before[t], p.shown[t], dh, dc)
            into_past[t, :, : 4 * hidden] = p.gates[t]
            into_past[t, :, 4 * hidden :] = asked[:, : len(w.past) - 4 * hidden]
            read = torch.cat([into_past[t] @ w.past, dc], dim=-1)
            asked = torch.empty_like(asked)
            additive_back(
                p.query[t], p.keys, w.v, p.open[t], p.values, p.weights[t], read,
                asked, into_keys, into_values, into_v,
            )  # fmt: skip
            p.query[t] = asked
        summaries = p.context[:, :, :hidden].flatten(end_dim=1)
        past = into_past.flatten(end_dim=1).T @ summaries
        written = p.values[:, p.slots :, :hidden].flatten(end_dim=1)
        key = into_keys[:, p.slots :].flatten(end_dim=1).T @ written
        place = into_keys[:, p.slots :].sum(dim=0)
        empty = into_keys[:, : p.slots]
        return empty, None, None, None, p.query, p.gates, past, key, into_v.sum(dim=0), place


def _laid_out(begun: Begun, keep: Tensor, query: Tensor, gates: Tensor, w: Weights) -> _Parts:
    """Room for all steps, and the tape with what is on it already."""
    steps, batch, score = query.shape
    hidden, slots = w.past.shape[1], begun.keep.shape[1]
    count = slots + steps
    keys, values = query.new_zeros(batch, count, score), query.new_zeros(batch, count, 2 * hidden)
    keys[:, :slots], values[:, :slots] = begun.keys, begun.values
    place = torch.arange(count, device=keep.device)
    written = place < slots + torch.arange(steps, device=keep.device)[:, None]
    open_ = torch.cat([begun.keep, keep], dim=1)[None] & written[:, None]
    return _Parts(
        w,
        slots,
        query.clone(memory_format=torch.contiguous_format),
        gates.clone(memory_format=torch.contiguous_format),
        open_.contiguous(),
        keys,
        values,
        query.new_empty(steps, batch, count),
        query.new_empty(steps, batch, 2 * hidden),
        *query.new_empty(2, steps, batch, hidden),
    )


class Taped(NamedTuple):
    """All steps, sentence by sentence. Only `hidden` leads gradients back; the tape has every slot."""

    hidden: Float[Tensor, "batch step hidden"]
    weights: Float[Tensor, "batch step slot"]
    read: Float[Tensor, "batch step both"]  # summaries of hidden states and of cells
    keys: Float[Tensor, "batch slot score"]
    values: Float[Tensor, "batch slot both"]


def tape_steps(
    begun: Begun,
    keep: Bool[Tensor, "batch step"],
    query: Float[Tensor, "batch step score"],
    gates: Float[Tensor, "batch step gates"],
    weights: Weights,
) -> Taped:
    """Run the loop: `query` and `gates` (in, forget, new, out) are what words bring. Padding comes last."""
    hidden, looks, read, keys, values = _Tape.apply(  # type: ignore[no-untyped-call]
        *begun, keep, query.transpose(0, 1), gates.transpose(0, 1), *weights
    )
    hidden, looks, read = (x.transpose(0, 1) for x in (hidden, looks, read))
    return Taped(hidden, looks, read, keys, values)

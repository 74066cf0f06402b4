"""All steps of a recurrent decoder as one operation with its own backward pass.

It is for decoders whose attention enters the recurrence, so that steps cannot be computed in parallel. A step depends
on the one before, but not all of it does: what the words contribute to the gates is computed for all steps beforehand,
the read-out for all steps afterwards, and in the backward pass the gradient of each weight is one matrix product over
all steps. `layers.state.step_loop` runs the same steps one by one, and the tests hold both equal.

Throughout, `dx` is the gradient of the loss with respect to x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd import Function

from heedful import kernels
from heedful.attention import Additive, Attention, Detail, Hooks
from heedful.attention.dispatch import is_plain
from heedful.fused.attention_steps import FusedAdditive, FusedAttention, FusedDot
from heedful.fused.buffers import take_buffers
from heedful.fused.cells import FUSED_CELLS, CellState, CellWeights, FusedCell
from heedful.optional import not_none

StepMode = Literal["attend-first", "feed-context", "feed-attentional", "conditional"]


@dataclass(frozen=True)
class DecoderSpec:
    """What a step computes; `s` is the top state of a stack of RNNs, `x` are the words.

    - `attend-first`: `c_t = attend(s_{t-1})`, `s_t = RNN([x_t; c_t], s_{t-1})`; with a gate the context is
      `sigmoid(w s_{t-1} + b) attend(s_{t-1})`
    - `feed-context`: `s_t = RNN([x_t; c_{t-1}], s_{t-1})`, `c_t = attend(s_t)`
    - `feed-attentional`: `s_t = RNN([x_t; a_{t-1}], s_{t-1})`, `c_t = attend(s_t)`, `a_t = tanh(W [s_t; c_t])`
    - `conditional`: `s' = GRU(x_t, s_{t-1})`, `c_t = attend(s')`, `s_t = GRU_2(c_t, s')`; one layer
    """

    mode: StepMode
    cell: Literal["gru", "lstm"]
    layers: int
    dot_scale: float | None  # of dot-product scores; None: additive scores
    record_weights: bool = False  # whether the attention weights are returned
    dropout_masks: tuple[Tensor, ...] = ()  # (step, batch, hidden): scaled masks of the inputs of the upper layers

    @property
    def states_per_layer(self) -> int:
        return 2 if self.cell == "lstm" else 1


def supports(attention: Attention, hooks: Hooks, *states: Tensor) -> bool:
    """Return whether `fused_steps` can run this attention on these states: nothing records scores or edits weights."""
    records_weights_only = hooks.edit is None and hooks.detail_at(attention.site.id) is not Detail.FULL
    quantized = isinstance(attention.score, Additive) and not isinstance(attention.score.query, nn.Linear)
    return is_plain(attention) and records_weights_only and not quantized and kernels.supports(*states)


class DecoderWeights(NamedTuple):
    """The weights of the recurrence; those that the mode does not use are None."""

    layers: tuple[CellWeights, ...]
    input_feed: Float[Tensor, "gates fed"] | None = None  # of the context or attentional vector that enters the RNN
    query: Float[Tensor, "score hidden"] | None = None
    v: Float[Tensor, "score"] | None = None
    attentional: Float[Tensor, "vector both"] | None = None
    gate: Float[Tensor, "1 hidden"] | None = None
    gate_bias: Float[Tensor, "1"] | None = None
    second: CellWeights | None = None  # of the second GRU in mode `conditional`

    def flatten(self) -> list[Tensor | None]:
        """Return the weights as arguments of an autograd function; `unflatten` reverses it."""
        second = [None] * 4 if self.second is None else list(self.second)
        return [*self[1:7], *second, *(weight for layer in self.layers for weight in layer)]

    @classmethod
    def unflatten(cls, weights: Sequence[Any]) -> DecoderWeights:
        by_layer = tuple(CellWeights(*weights[start : start + 4]) for start in range(10, len(weights), 4))
        second = None if weights[6] is None else CellWeights(*weights[6:10])
        return cls(by_layer, *weights[:6])._replace(second=second)


class _StepGradients(NamedTuple):
    """The gradients that reach the outputs of one step from outside the loop."""

    state: Tensor
    context: Tensor
    vector: Tensor
    weights: Tensor | None


class _DecoderLoop:
    """The forward and backward pass of all steps, and the buffers that they share."""

    def __init__(
        self,
        spec: DecoderSpec,
        weights: DecoderWeights,
        words: Tensor,
        first_feed: Tensor,
        memory: tuple[Tensor, Tensor, Tensor],
    ) -> None:
        steps, batch, _ = words.shape
        self.spec, self.weights, self.first_feed = spec, weights, first_feed
        self.attention: FusedAttention = (
            FusedAdditive(not_none(weights.query), not_none(weights.v), *memory, steps)
            if spec.dot_scale is None
            else FusedDot(spec.dot_scale, *memory, steps)
        )
        input_gates = words.clone(memory_format=torch.contiguous_format)
        make_cell = FUSED_CELLS[spec.cell]
        self.cells: list[FusedCell] = [
            make_cell(layer, torch.empty_like(input_gates) if depth else input_gates)
            for depth, layer in enumerate(weights.layers)
        ]
        self.second: FusedCell | None = None
        if weights.second is not None:
            self.second = make_cell(weights.second, torch.empty_like(input_gates))
        hidden = weights.layers[0].hidden.shape[1]
        self.upper_inputs = [words.new_empty(steps, batch, hidden) for _ in weights.layers[1:]]
        width = 0 if weights.attentional is None else len(weights.attentional)
        self.vectors = words.new_empty(steps, batch, width)
        self.dvectors = torch.empty_like(self.vectors)  # before tanh
        gated = weights.gate is not None
        self.gates = words.new_empty(steps, batch, 1 if gated else 0)  # after the backward pass, their gradients
        self.contexts = torch.empty_like(self.attention.contexts) if gated else self.attention.contexts

    @property
    def states(self) -> Tensor:
        """The top states of all steps."""
        return self.cells[-1].outputs if self.second is None else self.second.outputs

    def forward(self, state: list[CellState]) -> list[CellState]:
        """Run all steps from the given state; return the state after them."""
        fed = self.first_feed
        for t in range(len(self.contexts)):
            fed = self._step(t, state, fed)
        return state

    def _step(self, t: int, state: list[CellState], fed: Tensor) -> Tensor:
        """Run step t, which replaces `state`; return what is fed into the next step."""
        mode = self.spec.mode
        if mode == "conditional":
            second = not_none(self.second)
            between = self.cells[0].forward(t, state[0])
            second.set_input(t, self.attention.forward(t, between[0]))
            state[0] = second.forward(t, between)
            return fed
        if mode == "attend-first":
            fed = self._gated_context(t, state[-1][0])
        self._update(t, state, fed)
        if mode == "attend-first":
            return fed
        top = state[-1][0]
        context = self.attention.forward(t, top)
        if mode == "feed-context":
            return context
        weight = not_none(self.weights.attentional)
        torch.mm(torch.cat([top, context], dim=-1), weight.T, out=self.vectors[t])
        return self.vectors[t].tanh_()

    def _gated_context(self, t: int, state: Tensor) -> Tensor:
        """Return the context of a state, times the gate if there is one."""
        context = self.attention.forward(t, state)
        if self.weights.gate is None:
            return context
        logit = torch.addmm(not_none(self.weights.gate_bias), state, self.weights.gate.T)
        torch.sigmoid(logit, out=self.gates[t])
        return torch.mul(context, self.gates[t], out=self.contexts[t])

    def _update(self, t: int, state: list[CellState], fed: Tensor) -> None:
        """Run all layers of the RNN."""
        self.cells[0].input_gates[t].addmm_(fed, not_none(self.weights.input_feed).T)
        state[0] = self.cells[0].forward(t, state[0])
        for depth in range(1, self.spec.layers):
            below, inputs = state[depth - 1][0], self.upper_inputs[depth - 1][t]
            if self.spec.dropout_masks:
                torch.mul(below, self.spec.dropout_masks[depth - 1][t], out=inputs)
            else:
                inputs.copy_(below)
            self.cells[depth].set_input(t, inputs)
            state[depth] = self.cells[depth].forward(t, state[depth])

    def backward(self, gradients: Sequence[_StepGradients], dstate: list[CellState]) -> Tensor:
        """Run all steps in reverse; `dstate` becomes the gradient of the first state, `dfed` of the first feed."""
        self.attention.start_backward()
        dfed = torch.zeros_like(self.first_feed)
        for t in reversed(range(len(gradients))):
            dfed = self._step_backward(t, gradients[t], dstate, dfed)
        return dfed

    def _step_backward(self, t: int, grad: _StepGradients, dstate: list[CellState], dfed: Tensor) -> Tensor:
        """Backward pass of `_step`: turn the gradients of its results into those of its arguments."""
        mode, attention, dcontext = self.spec.mode, self.attention, grad.context
        if mode == "conditional":
            second = not_none(self.second)
            (dbetween,) = second.backward(t, (dstate[0][0] + grad.state,))
            dcontext = torch.addmm(dcontext, second.input_gates[t], not_none(not_none(self.weights.second).input))
            dbetween = dbetween + attention.backward(t, dcontext, grad.weights)
            dstate[0] = self.cells[0].backward(t, (dbetween,))
            return dfed
        dtop = dstate[-1][0] + grad.state
        if mode == "feed-attentional":
            self.dvectors[t] = (grad.vector + dfed) * (1 - self.vectors[t].square())
            dboth = self.dvectors[t] @ not_none(self.weights.attentional)
            dtop += dboth[:, : dtop.shape[-1]]
            dcontext = dcontext + dboth[:, dtop.shape[-1] :]
        elif mode == "feed-context":
            dcontext = dcontext + dfed
        if mode != "attend-first":
            dtop += attention.backward(t, dcontext, grad.weights)
        dstate[-1] = (dtop, *dstate[-1][1:])
        dfed = self._update_backward(t, dstate)
        if mode == "attend-first":
            dquery = self._gated_context_backward(t, dcontext + dfed, grad.weights)
            dstate[-1] = (dstate[-1][0] + dquery, *dstate[-1][1:])
        return dfed

    def _update_backward(self, t: int, dstate: list[CellState]) -> Tensor:
        """Backward pass of `_update`: return the gradient of what was fed into the lowest layer."""
        for depth in reversed(range(1, self.spec.layers)):
            dstate[depth] = self.cells[depth].backward(t, dstate[depth])
            dinputs = self.cells[depth].input_gates[t] @ not_none(self.weights.layers[depth].input)
            if self.spec.dropout_masks:
                dinputs = dinputs.mul_(self.spec.dropout_masks[depth - 1][t])
            below = dstate[depth - 1]
            dstate[depth - 1] = (below[0] + dinputs, *below[1:])
        dstate[0] = self.cells[0].backward(t, dstate[0])
        return self.cells[0].input_gates[t] @ not_none(self.weights.input_feed)

    def _gated_context_backward(self, t: int, dcontext: Tensor, dweights: Tensor | None) -> Tensor:
        """Backward pass of `_gated_context`: return the gradient of the state."""
        if self.weights.gate is None:
            return self.attention.backward(t, dcontext, dweights)
        gate = self.gates[t]
        dlogit = (dcontext * self.attention.contexts[t]).sum(dim=1, keepdim=True) * gate * (1 - gate)
        dstate = self.attention.backward(t, dcontext * gate, dweights)
        self.gates[t] = dlogit
        return dstate.addmm_(dlogit, self.weights.gate)

    def weight_gradients(self) -> DecoderWeights:
        """Return the gradients of all weights, after `backward`."""
        dquery, dv = self.attention.weight_gradients()
        gradients = DecoderWeights(
            tuple(
                cell.weight_gradients(inputs)
                for cell, inputs in zip(self.cells, [None, *self.upper_inputs], strict=True)
            ),
            query=dquery,
            v=dv,
        )
        if self.weights.gate is not None:
            states = torch.cat(self.attention.states)
            gradients = gradients._replace(gate=self.gates.flatten()[None] @ states, gate_bias=self.gates.sum().view(1))
        if self.second is not None:
            return gradients._replace(second=self.second.weight_gradients(self.attention.contexts))
        fed = self.vectors if self.spec.mode == "feed-attentional" else self.contexts
        if self.spec.mode != "attend-first":
            fed = torch.cat([self.first_feed[None], fed[:-1]])
        gradients = gradients._replace(
            input_feed=self.cells[0].input_gates.flatten(end_dim=1).T @ fed.flatten(end_dim=1)
        )
        if self.weights.attentional is not None:
            both = torch.cat([self.states, self.attention.contexts], dim=-1)
            gradients = gradients._replace(attentional=self.dvectors.flatten(end_dim=1).T @ both.flatten(end_dim=1))
        return gradients


class _DecoderSteps(Function):
    """Return states, contexts, attentional vectors and attention weights of all steps, and the final states."""

    @staticmethod
    def forward(
        ctx: Any,
        spec: DecoderSpec,
        keep: Tensor,
        words: Tensor,
        first_feed: Tensor,
        keys: Tensor,
        values: Tensor,
        *rest: Any,
    ) -> tuple[Tensor, ...]:
        count = spec.layers * spec.states_per_layer
        state, weights = rest[:count], DecoderWeights.unflatten(rest[count:])
        loop = _DecoderLoop(spec, weights, words, first_feed, (keys, values, keep))
        final = [t.clone() for layer in loop.forward(_by_layer(spec, state)) for t in layer]
        ctx.buffers = loop
        recorded = loop.attention.weights if spec.record_weights else words.new_empty(0)
        # Detached views: a node that held its own outputs would never be freed.
        return *(x.detach() for x in (loop.states, loop.contexts, loop.vectors, recorded)), *final

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        loop: _DecoderLoop = take_buffers(ctx)
        dstates, dcontexts, dvectors, dweights, *dfinal = grads
        dstate = [tuple(g.clone() for g in layer) for layer in _by_layer(loop.spec, dfinal)]
        gradients = [
            _StepGradients(dstates[t], dcontexts[t], dvectors[t], dweights[t] if loop.spec.record_weights else None)
            for t in range(len(dstates))
        ]
        dfed = loop.backward(gradients, dstate)
        feeds = loop.spec.mode in ("feed-context", "feed-attentional")
        return (
            None,
            None,
            loop.cells[0].input_gates,
            dfed if feeds else None,
            *loop.attention.memory_gradients(),
            *(g for layer in dstate for g in layer),
            *loop.weight_gradients().flatten(),
        )


def _by_layer(spec: DecoderSpec, states: Sequence[Tensor]) -> list[CellState]:
    """Group the states of all layers by layer."""
    size = spec.states_per_layer
    return [tuple(states[start : start + size]) for start in range(0, len(states), size)]


class FusedOutput(NamedTuple):
    """The output of all steps, and the state after them."""

    states: Float[Tensor, "batch step hidden"]
    contexts: Float[Tensor, "batch step width"]
    vectors: Float[Tensor, "batch step vector"]  # attentional vectors, if the mode has them
    weights: Float[Tensor, "batch step key"] | None  # if the spec asks to record them
    final: tuple[Float[Tensor, "batch hidden"], ...]


def fused_steps(
    spec: DecoderSpec,
    words: Float[Tensor, "batch step gates"],
    state: Sequence[Float[Tensor, "batch hidden"]],
    first_feed: Float[Tensor, "batch fed"],
    keys: Float[Tensor, "batch key score"],
    values: Float[Tensor, "batch key width"],
    keep: Bool[Tensor, "batch key"],
    weights: DecoderWeights,
) -> FusedOutput:
    """Run all steps of a decoder.

    `words` is what the words contribute to the gates of the lowest layer, `first_feed` is fed into the first step.
    """
    tensors = [t.contiguous() for t in (first_feed, keys, values, *state)]
    states, contexts, vectors, recorded, *final = _DecoderSteps.apply(  # type: ignore[no-untyped-call]
        spec, keep.contiguous(), words.transpose(0, 1), *tensors, *weights.flatten()
    )
    states, contexts, vectors = (t.transpose(0, 1) for t in (states, contexts, vectors))
    recorded = recorded.transpose(0, 1) if spec.record_weights else None
    return FusedOutput(states, contexts, vectors, recorded, tuple(final))

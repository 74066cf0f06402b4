"""All steps of a recurrent decoder as one operation with its own backward pass.

For decoders in which a step depends on the attention of the step before, so that steps cannot run in parallel. Only the
recurrence itself runs step by step: the product of the word embeddings with the input weights is computed for all steps
beforehand, the read-out for all steps afterwards, and in the backward pass the gradient of each weight is one matrix
product over all steps. `layers.state.step_loop` computes the same in plain PyTorch; the tests compare both.

In this package `dx` is the gradient of the loss with respect to x.
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
    """What a step computes; `s` is the state of the top layer, `x` the word embedding.

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
    record_weights: bool = False  # whether to return the attention weights
    dropout_masks: tuple[Tensor, ...] = ()  # (step, batch, hidden): scaled masks of the inputs of the upper layers

    @property
    def states_per_layer(self) -> int:
        return 2 if self.cell == "lstm" else 1


def supports(attention: Attention, hooks: Hooks, *states: Tensor) -> bool:
    """Return whether `fused_steps` can run this attention on these states: no hook records scores or edits weights."""
    records_weights_only = hooks.edit is None and hooks.detail_at(attention.site.id) is not Detail.FULL
    quantized = isinstance(attention.score, Additive) and not isinstance(attention.score.query, nn.Linear)
    return is_plain(attention) and records_weights_only and not quantized and kernels.supports(*states)


class DecoderWeights(NamedTuple):
    """The weights of the recurrence; those that the mode does not use are None."""

    layers: tuple[CellWeights, ...]
    input_feed: Float[Tensor, "gates feed"] | None = None  # for the context or attentional vector that enters the RNN
    query: Float[Tensor, "score hidden"] | None = None
    v: Float[Tensor, "score"] | None = None
    attentional: Float[Tensor, "vector both"] | None = None
    gate: Float[Tensor, "1 hidden"] | None = None
    gate_bias: Float[Tensor, "1"] | None = None
    second_gru: CellWeights | None = None  # mode `conditional`

    def flatten(self) -> list[Tensor | None]:
        """Return the weights as a list, as autograd functions take them; `unflatten` reverses it.

        First the 6 single weights, then the 4 of the second GRU, then 4 per layer.
        """
        second_gru = [None] * 4 if self.second_gru is None else list(self.second_gru)
        return [*self[1:7], *second_gru, *(weight for layer in self.layers for weight in layer)]

    @classmethod
    def unflatten(cls, weights: Sequence[Any]) -> DecoderWeights:
        layers = tuple(CellWeights(*weights[start : start + 4]) for start in range(10, len(weights), 4))
        second_gru = None if weights[6] is None else CellWeights(*weights[6:10])
        return cls(layers, *weights[:6])._replace(second_gru=second_gru)


class _StepGradients(NamedTuple):
    """The gradients of the outputs of one step, without those that later steps contribute."""

    state: Tensor
    context: Tensor
    attentional_vector: Tensor
    weights: Tensor | None


class _DecoderLoop:
    """The forward and backward passes of all steps, and the buffers they share.

    `feed` is the context or attentional vector that enters the RNN together with the word (input feeding).
    """

    def __init__(
        self,
        spec: DecoderSpec,
        weights: DecoderWeights,
        word_gates: Tensor,
        initial_feed: Tensor,
        memory: tuple[Tensor, Tensor, Tensor],
    ) -> None:
        steps, batch, _ = word_gates.shape
        self.spec, self.weights, self.initial_feed = spec, weights, initial_feed
        self.attention: FusedAttention = (
            FusedAdditive(not_none(weights.query), not_none(weights.v), *memory, steps)
            if spec.dot_scale is None
            else FusedDot(spec.dot_scale, *memory, steps)
        )
        input_gates = word_gates.clone(memory_format=torch.contiguous_format)
        make_cell = FUSED_CELLS[spec.cell]
        self.cells: list[FusedCell] = [
            make_cell(layer, torch.empty_like(input_gates) if depth else input_gates)
            for depth, layer in enumerate(weights.layers)
        ]
        self.second_gru: FusedCell | None = None
        if weights.second_gru is not None:
            self.second_gru = make_cell(weights.second_gru, torch.empty_like(input_gates))
        hidden = weights.layers[0].hidden.shape[1]
        self.upper_inputs = [word_gates.new_empty(steps, batch, hidden) for _ in weights.layers[1:]]
        width = 0 if weights.attentional is None else len(weights.attentional)
        self.attentional_vectors = word_gates.new_empty(steps, batch, width)
        self.dattentional_vectors = torch.empty_like(self.attentional_vectors)  # before tanh
        gated = weights.gate is not None
        self.gates = word_gates.new_empty(steps, batch, 1 if gated else 0)  # after the backward pass, their gradients
        self.contexts = torch.empty_like(self.attention.contexts) if gated else self.attention.contexts

    @property
    def states(self) -> Tensor:
        """The top states of all steps."""
        return self.cells[-1].outputs if self.second_gru is None else self.second_gru.outputs

    def forward(self, state: list[CellState]) -> list[CellState]:
        """Run all steps from the given state; return the state after them."""
        feed = self.initial_feed
        for t in range(len(self.contexts)):
            feed = self._step(t, state, feed)
        return state

    def _step(self, t: int, state: list[CellState], feed: Tensor) -> Tensor:
        """Run step t and update `state` in place; return the feed of the next step."""
        mode = self.spec.mode
        if mode == "conditional":
            second_gru = not_none(self.second_gru)
            intermediate = self.cells[0].forward(t, state[0])
            second_gru.set_input(t, self.attention.forward(t, intermediate[0]))
            state[0] = second_gru.forward(t, intermediate)
            return feed
        if mode == "attend-first":
            feed = self._gated_context(t, state[-1][0])
        self._run_rnn(t, state, feed)
        if mode == "attend-first":
            return feed
        top = state[-1][0]
        context = self.attention.forward(t, top)
        if mode == "feed-context":
            return context
        weight = not_none(self.weights.attentional)
        torch.mm(torch.cat([top, context], dim=-1), weight.T, out=self.attentional_vectors[t])
        return self.attentional_vectors[t].tanh_()

    def _gated_context(self, t: int, state: Tensor) -> Tensor:
        """Return the context of a state, times the gate if there is one."""
        context = self.attention.forward(t, state)
        if self.weights.gate is None:
            return context
        logit = torch.addmm(not_none(self.weights.gate_bias), state, self.weights.gate.T)
        torch.sigmoid(logit, out=self.gates[t])
        return torch.mul(context, self.gates[t], out=self.contexts[t])

    def _run_rnn(self, t: int, state: list[CellState], feed: Tensor) -> None:
        """Run all layers of the RNN and update `state` in place."""
        self.cells[0].input_gates[t].addmm_(feed, not_none(self.weights.input_feed).T)
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
        """Run all steps in reverse; return the gradient of the initial feed.

        `dstate` is updated in place, from the gradient of the final state to that of the initial state.
        """
        self.attention.start_backward()
        dfeed = torch.zeros_like(self.initial_feed)
        for t in reversed(range(len(gradients))):
            dfeed = self._step_backward(t, gradients[t], dstate, dfeed)
        return dfeed

    def _step_backward(self, t: int, grad: _StepGradients, dstate: list[CellState], dfeed: Tensor) -> Tensor:
        """Backward pass of `_step`: turn the gradients of its results into those of its arguments."""
        mode, attention, dcontext = self.spec.mode, self.attention, grad.context
        if mode == "conditional":
            second_gru = not_none(self.second_gru)
            (dintermediate,) = second_gru.backward(t, (dstate[0][0] + grad.state,))
            dcontext = torch.addmm(
                dcontext, second_gru.input_gates[t], not_none(not_none(self.weights.second_gru).input)
            )
            dintermediate = dintermediate + attention.backward(t, dcontext, grad.weights)
            dstate[0] = self.cells[0].backward(t, (dintermediate,))
            return dfeed
        dtop = dstate[-1][0] + grad.state
        if mode == "feed-attentional":
            self.dattentional_vectors[t] = (grad.attentional_vector + dfeed) * (
                1 - self.attentional_vectors[t].square()
            )
            dconcat = self.dattentional_vectors[t] @ not_none(self.weights.attentional)
            dtop += dconcat[:, : dtop.shape[-1]]
            dcontext = dcontext + dconcat[:, dtop.shape[-1] :]
        elif mode == "feed-context":
            dcontext = dcontext + dfeed
        if mode != "attend-first":
            dtop += attention.backward(t, dcontext, grad.weights)
        dstate[-1] = (dtop, *dstate[-1][1:])
        dfeed = self._run_rnn_backward(t, dstate)
        if mode == "attend-first":
            dquery = self._gated_context_backward(t, dcontext + dfeed, grad.weights)
            dstate[-1] = (dstate[-1][0] + dquery, *dstate[-1][1:])
        return dfeed

    def _run_rnn_backward(self, t: int, dstate: list[CellState]) -> Tensor:
        """Backward pass of `_run_rnn`: return the gradient of the feed."""
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
        if self.second_gru is not None:
            return gradients._replace(second_gru=self.second_gru.weight_gradients(self.attention.contexts))
        feed = self.attentional_vectors if self.spec.mode == "feed-attentional" else self.contexts
        if self.spec.mode != "attend-first":
            feed = torch.cat([self.initial_feed[None], feed[:-1]])
        gradients = gradients._replace(
            input_feed=self.cells[0].input_gates.flatten(end_dim=1).T @ feed.flatten(end_dim=1)
        )
        if self.weights.attentional is not None:
            states_contexts = torch.cat([self.states, self.attention.contexts], dim=-1)
            gradients = gradients._replace(
                attentional=self.dattentional_vectors.flatten(end_dim=1).T @ states_contexts.flatten(end_dim=1)
            )
        return gradients


class _DecoderSteps(Function):
    """Return states, contexts, attentional vectors and attention weights of all steps, and the final states."""

    @staticmethod
    def forward(
        ctx: Any,
        spec: DecoderSpec,
        keep: Tensor,
        word_gates: Tensor,
        initial_feed: Tensor,
        keys: Tensor,
        values: Tensor,
        *rest: Any,
    ) -> tuple[Tensor, ...]:
        count = spec.layers * spec.states_per_layer
        state, weights = rest[:count], DecoderWeights.unflatten(rest[count:])
        loop = _DecoderLoop(spec, weights, word_gates, initial_feed, (keys, values, keep))
        final = [t.clone() for layer in loop.forward(_group_by_layer(spec, state)) for t in layer]
        ctx.buffers = loop
        recorded = loop.attention.weights if spec.record_weights else word_gates.new_empty(0)
        # Detached views: an autograd node that holds its own outputs is never freed.
        return *(x.detach() for x in (loop.states, loop.contexts, loop.attentional_vectors, recorded)), *final

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        loop: _DecoderLoop = take_buffers(ctx)
        dstates, dcontexts, dvectors, dweights, *dfinal = grads
        dstate = [tuple(g.clone() for g in layer) for layer in _group_by_layer(loop.spec, dfinal)]
        gradients = [
            _StepGradients(dstates[t], dcontexts[t], dvectors[t], dweights[t] if loop.spec.record_weights else None)
            for t in range(len(dstates))
        ]
        dfeed = loop.backward(gradients, dstate)
        feeds = loop.spec.mode in ("feed-context", "feed-attentional")
        return (
            None,
            None,
            loop.cells[0].input_gates,
            dfeed if feeds else None,
            *loop.attention.memory_gradients(),
            *(g for layer in dstate for g in layer),
            *loop.weight_gradients().flatten(),
        )


def _group_by_layer(spec: DecoderSpec, states: Sequence[Tensor]) -> list[CellState]:
    """Group the states of all layers by layer."""
    size = spec.states_per_layer
    return [tuple(states[start : start + size]) for start in range(0, len(states), size)]


class FusedOutput(NamedTuple):
    """The output of all steps, and the state after them."""

    states: Float[Tensor, "batch step hidden"]
    contexts: Float[Tensor, "batch step width"]
    attentional_vectors: Float[Tensor, "batch step vector"]  # of width 0 unless the mode is `feed-attentional`
    weights: Float[Tensor, "batch step key"] | None  # with `record_weights`
    final: tuple[Float[Tensor, "batch hidden"], ...]


def fused_steps(
    spec: DecoderSpec,
    word_gates: Float[Tensor, "batch step gates"],
    state: Sequence[Float[Tensor, "batch hidden"]],
    initial_feed: Float[Tensor, "batch feed"],
    keys: Float[Tensor, "batch key score"],
    values: Float[Tensor, "batch key width"],
    keep: Bool[Tensor, "batch key"],
    weights: DecoderWeights,
) -> FusedOutput:
    """Run all steps of a decoder.

    `word_gates` is `W_i x + b_i` of the lowest layer for word embeddings x, `initial_feed` the feed of the first step.
    """
    tensors = [t.contiguous() for t in (initial_feed, keys, values, *state)]
    states, contexts, vectors, recorded, *final = _DecoderSteps.apply(  # type: ignore[no-untyped-call]
        spec, keep.contiguous(), word_gates.transpose(0, 1), *tensors, *weights.flatten()
    )
    states, contexts, vectors = (t.transpose(0, 1) for t in (states, contexts, vectors))
    recorded = recorded.transpose(0, 1) if spec.record_weights else None
    return FusedOutput(states, contexts, vectors, recorded, tuple(final))

"""Recurrent cells over all steps of a loop, with their own backward pass.

The forward pass writes each step into buffers for all steps. In the backward pass gradients replace the gates in these
buffers, so that the gradient of each weight is one matrix product over all steps.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.kernels import gru_cell, gru_cell_backward, lstm_cell, lstm_cell_backward
from heedful.optional import not_none

Steps = Float[Tensor, "step batch _"]
CellState = tuple[Tensor, ...]  # of one layer: a GRU's hidden state, an LSTM's hidden state and cell


class CellWeights(NamedTuple):
    """The weights of one layer; the lowest has no `input` weights, since its input gates are computed outside."""

    hidden: Float[Tensor, "gates hidden"]
    hidden_bias: Float[Tensor, "gates"]
    input: Float[Tensor, "gates below"] | None = None
    input_bias: Float[Tensor, "gates"] | None = None


@runtime_checkable
class FusedCell(Protocol):
    """One layer of cells over all steps."""

    input_gates: Steps  # `W_i x + b_i`; after the backward pass, their gradient
    outputs: Steps  # hidden states

    def set_input(self, t: int, x: Tensor) -> None:
        """Compute the input gates of step t from the layer below."""

    def forward(self, t: int, state: CellState) -> CellState:
        """Run step t from the state before it."""

    def backward(self, t: int, grad: CellState) -> CellState:
        """Turn the gradient of the state after step t into that of the state before it."""

    def weight_gradients(self, inputs: Steps | None) -> CellWeights:
        """Return the gradients of the weights; `inputs` are those of all steps."""


class FusedGRU:
    """A GRU layer (see `nn.GRUCell`)."""

    def __init__(self, weights: CellWeights, input_gates: Steps) -> None:
        steps, batch, gates = input_gates.shape
        hidden = gates // 3
        self.weights, self.input_gates = weights, input_gates
        self.hidden_gates = input_gates.new_empty(batch, gates)  # of the current step
        self.gates = torch.empty_like(input_gates)  # activated; then the gradients of the hidden gates
        self.outputs, self.candidates = input_gates.new_empty(2, steps, batch, hidden)
        self.previous: list[Tensor] = []  # hidden states before each step

    def set_input(self, t: int, x: Tensor) -> None:
        torch.addmm(not_none(self.weights.input_bias), x, not_none(self.weights.input).T, out=self.input_gates[t])

    def forward(self, t: int, state: CellState) -> CellState:
        (h,) = state
        self.previous.append(h)
        torch.addmm(self.weights.hidden_bias, h, self.weights.hidden.T, out=self.hidden_gates)
        self.candidates[t] = self.hidden_gates[:, 2 * h.shape[1] :]  # the only third that the backward pass needs
        gru_cell(self.input_gates[t], self.hidden_gates, h, self.outputs[t], self.gates[t])
        return (self.outputs[t],)

    def backward(self, t: int, grad: CellState) -> CellState:
        (dout,) = grad
        dh, dgates = torch.empty_like(dout), self.gates[t]
        gru_cell_backward(self.gates[t], self.candidates[t], self.previous[t], dout, self.input_gates[t], dgates, dh)
        return (dh.addmm_(dgates, self.weights.hidden),)

    def weight_gradients(self, inputs: Steps | None) -> CellWeights:
        dgates, previous = self.gates.flatten(end_dim=1), torch.cat(self.previous)
        return CellWeights(dgates.T @ previous, dgates.sum(dim=0), *_input_gradients(self.input_gates, inputs))


class FusedLSTM:
    """An LSTM layer (see `nn.LSTMCell`); `input_gates` also holds the activated gates."""

    def __init__(self, weights: CellWeights, input_gates: Steps) -> None:
        steps, batch, gates = input_gates.shape
        self.weights, self.input_gates = weights, input_gates
        if weights.input is None:
            self.input_gates += weights.hidden_bias
            self.bias = weights.hidden_bias
        else:
            self.bias = weights.hidden_bias + not_none(weights.input_bias)
        self.outputs, self.cells, self.tanh_cells = input_gates.new_empty(3, steps, batch, gates // 4)
        self.previous: list[CellState] = []  # states before each step

    def set_input(self, t: int, x: Tensor) -> None:
        torch.addmm(self.bias, x, not_none(self.weights.input).T, out=self.input_gates[t])

    def forward(self, t: int, state: CellState) -> CellState:
        self.previous.append(state)
        self.input_gates[t].addmm_(state[0], self.weights.hidden.T)
        lstm_cell(self.input_gates[t], state[1], self.outputs[t], self.cells[t], self.tanh_cells[t])
        return self.outputs[t], self.cells[t]

    def backward(self, t: int, grad: CellState) -> CellState:
        dh, dc = grad[0].contiguous(), grad[1].clone(memory_format=torch.contiguous_format)
        lstm_cell_backward(self.input_gates[t], self.previous[t][1], self.tanh_cells[t], dh, dc)
        return self.input_gates[t] @ self.weights.hidden, dc

    def weight_gradients(self, inputs: Steps | None) -> CellWeights:
        dgates = self.input_gates.flatten(end_dim=1)
        previous = torch.cat([h for h, _ in self.previous])
        return CellWeights(dgates.T @ previous, dgates.sum(dim=0), *_input_gradients(self.input_gates, inputs))


FUSED_CELLS: dict[str, type[FusedGRU] | type[FusedLSTM]] = {"gru": FusedGRU, "lstm": FusedLSTM}


def _input_gradients(dgates: Steps, inputs: Steps | None) -> tuple[Tensor | None, Tensor | None]:
    """Return the gradients of the input weight and bias."""
    if inputs is None:
        return None, None
    flat = dgates.flatten(end_dim=1)
    return flat.T @ inputs.flatten(end_dim=1), flat.sum(dim=0)

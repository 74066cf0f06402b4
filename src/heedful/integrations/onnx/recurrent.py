"""Recurrent layers in a form that torch's exporter can trace: packed sequences and C kernels have no ONNX counterpart.

Whole sequences become the ONNX operators RNN, GRU and LSTM, which take the lengths of the sequences; single steps
become matrix products.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.layers.recurrent import RecurrentEncoder, RecurrentStack
from heedful.layers.state import EncoderOutput


class Operator(NamedTuple):
    """An ONNX operator: its name, and the order of torch's gates in it."""

    name: str
    gates: tuple[int, ...]


OPERATORS: Mapping[type[nn.Module], Operator] = {
    nn.RNN: Operator("RNN", (0,)),
    nn.GRU: Operator("GRU", (1, 0, 2)),  # torch: reset, update, new; ONNX: update, reset, hidden
    nn.LSTM: Operator("LSTM", (0, 3, 1, 2)),  # torch: input, forget, cell, output; ONNX: input, output, forget, cell
}


class OnnxEncoder(nn.Module):
    """A `RecurrentEncoder` whose layers are ONNX operators. It cannot be run, only exported."""

    def __init__(self, encoder: RecurrentEncoder) -> None:
        super().__init__()
        self.hidden = encoder.layers[0].hidden_size
        self.directions = encoder.directions
        self.residual = encoder.residual
        self.operator = OPERATORS[type(encoder.layers[0])]
        self.norms = encoder.norms
        self.weights = nn.ParameterList()
        for rnn in encoder.layers:
            self.weights.extend(self._arrange(rnn))

    def _arrange(self, rnn: nn.RNNBase) -> list[nn.Parameter]:
        """Return input weights, hidden weights and biases, each (direction, ...), with the gates in ONNX's order."""
        size = rnn.hidden_size

        def reorder(weight: Tensor) -> Tensor:
            return torch.cat([weight[gate * size : (gate + 1) * size] for gate in self.operator.gates])

        by_direction = [[reorder(weight.detach()) for weight in weights] for weights in rnn.all_weights]
        input_weight, hidden_weight, input_bias, hidden_bias = (
            torch.stack(parts) for parts in zip(*by_direction, strict=True)
        )
        biases = torch.cat([input_bias, hidden_bias], dim=-1)
        return [nn.Parameter(t, requires_grad=False) for t in (input_weight, hidden_weight, biases)]

    def forward(self, inputs: Tensor, keep: Tensor) -> EncoderOutput:
        lengths = keep.sum(dim=1).to(torch.int32)
        hidden: list[Tensor] = []
        cells: list[Tensor] = []
        x = inputs
        for depth in range(len(self.weights) // 3):
            states, final, *cell = self._run(x, lengths, depth)
            hidden.append(final)
            cells += cell
            states = self.norms[depth](states) if len(self.norms) else states
            x = states + x if self.residual and depth else states
        x = x.masked_fill(~keep[..., None], 0.0)
        return EncoderOutput(x, x, keep, tuple(hidden), tuple(cells))

    def _run(self, x: Tensor, lengths: Tensor, depth: int) -> list[Tensor]:
        """Run a layer; return its states (batch, key, width) and its final states, directions concatenated."""
        batch, length = x.shape[:2]
        is_lstm = self.operator.name == "LSTM"
        attributes: dict[str, Any] = {"hidden_size": self.hidden}
        if self.directions == 2:
            attributes["direction"] = "bidirectional"
        if self.operator.name == "GRU":
            attributes["linear_before_reset"] = 1
        final = (self.directions, batch, self.hidden)
        outputs = torch.onnx.ops.symbolic_multi_out(
            self.operator.name,
            [x.transpose(0, 1), *(self.weights[3 * depth + i] for i in range(3)), lengths],
            attributes,
            dtypes=[x.dtype] * (3 if is_lstm else 2),
            shapes=[(length, self.directions, batch, self.hidden), *[final] * (2 if is_lstm else 1)],
            version=14,
        )
        states, *finals = outputs
        by_sentence = states.permute(2, 0, 1, 3).flatten(start_dim=2)
        return [by_sentence, *(t.transpose(0, 1).flatten(start_dim=1) for t in finals)]


class OnnxCell(nn.Module):
    """One step of an RNN, GRU or LSTM of one layer, called like torch's module."""

    def __init__(self, rnn: nn.RNNBase) -> None:
        super().__init__()
        assert len(rnn.all_weights) == 1
        self.kind = OPERATORS[type(rnn)].name
        self.input_weight, self.hidden_weight, self.input_bias, self.hidden_bias = rnn.all_weights[0]

    @property
    def all_weights(self) -> list[list[nn.Parameter]]:
        return [[self.input_weight, self.hidden_weight, self.input_bias, self.hidden_bias]]

    def forward(self, x: Tensor, state: Tensor | tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor | tuple[Tensor, ...]]:
        h = state[0][0] if isinstance(state, tuple) else state[0]
        gates = F.linear(x[:, 0], self.input_weight, self.input_bias)
        recurrent = F.linear(h, self.hidden_weight, self.hidden_bias)
        if self.kind == "RNN":
            after = torch.tanh(gates + recurrent)
        elif self.kind == "GRU":
            (i_reset, i_update, i_new), (h_reset, h_update, h_new) = gates.chunk(3, -1), recurrent.chunk(3, -1)
            reset, update = torch.sigmoid(i_reset + h_reset), torch.sigmoid(i_update + h_update)
            new = torch.tanh(i_new + reset * h_new)
            after = new + update * (h - new)
        else:
            input_gate, forget_gate, candidate, output_gate = (gates + recurrent).chunk(4, -1)
            cell = torch.sigmoid(forget_gate) * state[1][0] + torch.sigmoid(input_gate) * torch.tanh(candidate)
            after = torch.sigmoid(output_gate) * torch.tanh(cell)
            return after[:, None], (after[None], cell[None])
        return after[:, None], after[None]


class OnnxStack(nn.Module):
    """A `RecurrentStack` of `OnnxCell`s. Where `started` is False, its states stay as they are."""

    def __init__(self, stack: RecurrentStack) -> None:
        super().__init__()
        for depth, rnn in enumerate(stack.layers):
            stack.layers[depth] = OnnxCell(rnn)
        self.stack = stack
        self.started: Tensor | None = None  # a scalar; only of decoders whose first step does not update

    @property
    def states_per_layer(self) -> int:
        return self.stack.states_per_layer

    def forward(self, inputs: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        states, after = self.stack(inputs, state)
        if self.started is not None:
            after = tuple(torch.where(self.started, new, old) for new, old in zip(after, state, strict=True))
        return states, after

    def top(self, state: tuple[Tensor, ...]) -> Tensor:
        """Return the hidden state of the top layer."""
        return self.stack.top(state)


def replace_recurrent(model: nn.Module) -> None:
    """Replace the recurrent layers of a model, which must be a copy, by those that can be exported."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, RecurrentEncoder):
                setattr(parent, name, OnnxEncoder(child))
            elif isinstance(child, RecurrentStack):
                setattr(parent, name, OnnxStack(child))
            elif name == "second_gru" and isinstance(child, nn.GRU):
                setattr(parent, name, OnnxCell(child))

"""Stacked plain RNNs, GRUs or LSTMs, and the recurrent encoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from heedful import kernels
from heedful.config import EncoderConfig
from heedful.fused.packed_gru import final_states, packed_gru, run_packed_gru
from heedful.fused.packed_gru import supports as packed_gru_supports
from heedful.layers.dropout import Dropout
from heedful.layers.modules import TypedModuleList
from heedful.layers.state import EncoderOutput

CellKind = Literal["rnn", "gru", "lstm"]
CELLS: dict[str, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class Int8Gates(NamedTuple):
    """The quantized products `W_i x + b_i` and `W_h h + b_h` of one layer and direction."""

    input: kernels.Int8Product
    hidden: kernels.Int8Product

    @classmethod
    def from_weights(cls, weights: list[nn.Parameter]) -> Int8Gates:
        input_weight, hidden_weight, input_bias, hidden_bias = weights
        return cls(kernels.Int8Product(input_weight, input_bias), kernels.Int8Product(hidden_weight, hidden_bias))


class RecurrentStack(nn.Module):
    """Layers of one cell kind, with dropout between them and optional residual connections and layer norms.

    The state is a flat tuple of (row, hidden) tensors: one per layer, for an LSTM the hidden state and the cell.
    """

    def __init__(
        self,
        kind: CellKind,
        input_size: int,
        hidden_size: int,
        layers: int,
        *,
        dropout: float = 0.0,
        residual: bool = False,
        layer_norm: bool = False,
    ) -> None:
        super().__init__()
        self.kind: CellKind = kind
        self.hidden_size = hidden_size
        self.layers = TypedModuleList(
            CELLS[kind](input_size if depth == 0 else hidden_size, hidden_size, batch_first=True)
            for depth in range(layers)
        )
        self.norms = TypedModuleList(nn.LayerNorm(hidden_size) for _ in range(layers if layer_norm else 0))
        self.dropout = Dropout(dropout)
        self.residual = residual
        self.int8_gates: list[Int8Gates] = []  # per layer; filled by `quantize`

    @property
    def states_per_layer(self) -> int:
        return 2 if self.kind == "lstm" else 1

    def forward(
        self, inputs: Float[Tensor, "row query input"], state: tuple[Tensor, ...]
    ) -> tuple[Float[Tensor, "row query hidden"], tuple[Tensor, ...]]:
        """Return the top states of one or more steps, and the state after them."""
        after: list[Tensor] = []
        x = inputs
        for depth in range(len(self.layers)):
            layer_state = state[depth * self.states_per_layer : (depth + 1) * self.states_per_layer]
            layer_input = x if depth == 0 else self.dropout(x)
            step = self._kernel_step if self._can_use_kernels(layer_input) else self._torch_step
            out, last = step(depth, layer_input, layer_state)
            out = self.norms[depth](out) if len(self.norms) else out
            x = out + x if self.residual and depth else out
            after += last
        return x, tuple(after)

    def top(self, state: tuple[Tensor, ...]) -> Float[Tensor, "row hidden"]:
        """Return the hidden state of the top layer."""
        return state[-self.states_per_layer]

    def quantize(self) -> None:
        """Quantize the matrices of gated cells to int8, for single steps without gradients."""
        if self.kind != "rnn":
            self.int8_gates = [Int8Gates.from_weights(rnn.all_weights[0]) for rnn in self.layers]

    def _can_use_kernels(self, x: Tensor) -> bool:
        """Return whether the C kernels can run: a single step of a gated cell, without gradients."""
        return self.kind != "rnn" and x.shape[1] == 1 and kernels.supports(x, gradients=False)

    def _torch_step(self, depth: int, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run one layer over one or more steps; return its outputs and its last state."""
        stacked = tuple(t.unsqueeze(0).contiguous() for t in state)  # torch's RNNs take (1, row, hidden)
        out, last = self.layers[depth](x, stacked if self.kind == "lstm" else stacked[0])
        return out, tuple(t.squeeze(0) for t in (last if self.kind == "lstm" else (last,)))

    def _kernel_step(self, depth: int, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run one step of one layer without the overhead of torch's RNN modules."""
        h = state[0].contiguous()
        if self.int8_gates:
            input_gates, hidden_gates = self.int8_gates[depth].input(x[:, 0]), self.int8_gates[depth].hidden(h)
        else:
            input_weight, hidden_weight, input_bias, hidden_bias = self.layers[depth].all_weights[0]
            input_gates = nn.functional.linear(x[:, 0], input_weight, input_bias)
            hidden_gates = nn.functional.linear(h, hidden_weight, hidden_bias)
        out = torch.empty_like(h)
        if self.kind == "gru":
            kernels.gru_cell(input_gates, hidden_gates, h, out, torch.empty_like(input_gates))
            return out[:, None], (out,)
        cell, tanh_cell = torch.empty_like(h), torch.empty_like(h)
        kernels.lstm_cell(input_gates.add_(hidden_gates), state[1].contiguous(), out, cell, tanh_cell)
        return out[:, None], (out, cell)


class RecurrentEncoder(nn.Module):
    """A uni- or bidirectional recurrent encoder; sentences are packed, so padding is never computed."""

    def __init__(self, config: EncoderConfig, input_size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.directions = 2 if config.bidirectional else 1
        self.width = config.hidden * self.directions
        self.layers = TypedModuleList(
            CELLS[config.kind](
                input_size if depth == 0 else self.width,
                config.hidden,
                batch_first=True,
                bidirectional=config.bidirectional,
            )
            for depth in range(config.layers)
        )
        self.norms = TypedModuleList(nn.LayerNorm(self.width) for _ in range(config.layers if config.layer_norm else 0))
        self.dropout = Dropout(dropout)
        self.residual = config.residual
        self.int8_gates: list[list[Int8Gates]] = []  # per layer and direction; filled by `quantize`

    def forward(self, inputs: Float[Tensor, "batch key input"], keep: Bool[Tensor, "batch key"]) -> EncoderOutput:
        packed = pack_padded_sequence(inputs, keep.sum(dim=1).cpu(), batch_first=True, enforce_sorted=False)
        hidden: list[Tensor] = []
        cells: list[Tensor] = []
        x: Tensor = packed.data
        for depth, rnn in enumerate(self.layers):
            layer_input = x if depth == 0 else self.dropout(x)
            if isinstance(rnn, nn.GRU) and packed_gru_supports(layer_input):
                states, final_hidden = self._packed_gru(depth, layer_input, packed)
                hidden.append(final_hidden)
            else:
                output, final = rnn(_repack(packed, layer_input))
                h, *c = final if isinstance(final, tuple) else (final,)
                hidden.append(_join_directions(h))
                cells += [_join_directions(cell) for cell in c]
                states = output.data
            states = self.norms[depth](states) if self.norms else states
            x = states + x if self.residual and depth else states
        padded, _ = pad_packed_sequence(_repack(packed, x), batch_first=True, total_length=keep.shape[1])
        return EncoderOutput(padded, padded, keep, tuple(hidden), tuple(cells))

    def quantize(self) -> None:
        """Quantize the matrices of GRUs to int8, for encoding without gradients."""
        if isinstance(self.layers[0], nn.GRU):
            self.int8_gates = [[Int8Gates.from_weights(w) for w in rnn.all_weights] for rnn in self.layers]

    def _packed_gru(self, depth: int, x: Tensor, packed: PackedSequence) -> tuple[Tensor, Tensor]:
        """Run one GRU layer; return the states at every word and the final states, directions concatenated."""
        sizes = packed.batch_sizes.tolist()
        states, finals = [], []
        for direction, weights in enumerate(self.layers[depth].all_weights):
            reverse = direction == 1
            if self.int8_gates:
                output = _int8_packed_gru(x, sizes, self.int8_gates[depth][direction], reverse)
            else:
                input_weight, hidden_weight, input_bias, hidden_bias = weights
                input_gates = nn.functional.linear(x, input_weight, input_bias)
                output = packed_gru(input_gates, hidden_weight, hidden_bias, sizes, reverse)
            states.append(output)
            finals.append(final_states(output, sizes, reverse))
        return torch.cat(states, dim=-1), torch.cat(finals, dim=-1)[packed.unsorted_indices]


def _int8_packed_gru(x: Tensor, sizes: list[int], gates: Int8Gates, reverse: bool) -> Tensor:
    """Run a quantized GRU over packed sentences."""
    input_gates = gates.input(x)
    output = kernels.int8_gru_sequence(input_gates, sizes, gates.hidden, reverse)
    if output is not None:
        return output
    previous, candidates = input_gates.new_empty(2, len(input_gates), input_gates.shape[1] // 3)
    buffers = previous, candidates, torch.empty_like(input_gates)
    return run_packed_gru(input_gates, sizes, gates.hidden, reverse, *buffers)


def _repack(packed: PackedSequence, data: Tensor) -> PackedSequence:
    """Return other data packed in the same way."""
    return PackedSequence(data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)


def _join_directions(final: Float[Tensor, "direction batch hidden"]) -> Float[Tensor, "batch both"]:
    """Concatenate the final states of both directions (a view would mix the sentences of a batch)."""
    return torch.cat(list(final), dim=-1)

"""Stacks of plain RNNs, GRUs or LSTMs, through torch's fused kernels, and the encoder made of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from heedful.config import EncoderConfig
from heedful.layers.modules import Modules
from heedful.layers.state import Read

Cell = Literal["rnn", "gru", "lstm"]
CELLS: dict[str, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class Stack(nn.Module):
    """Layers of one cell kind, one above the other; dropout between them, residuals and norms by choice.

    Its state is a flat tuple of (row, hidden) tensors: one a layer, for an LSTM hidden and cell.
    """

    def __init__(
        self,
        kind: Cell,
        input: int,
        hidden: int,
        layers: int,
        *,
        dropout: float = 0.0,
        residual: bool = False,
        layer_norm: bool = False,
    ) -> None:
        super().__init__()
        self.kind: Cell = kind
        self.hidden = hidden
        self.layers = Modules(
            CELLS[kind](input if depth == 0 else hidden, hidden, batch_first=True) for depth in range(layers)
        )
        self.norms = Modules(nn.LayerNorm(hidden) for _ in range(layers if layer_norm else 0))
        self.dropout = nn.Dropout(dropout)
        self.residual = residual

    @property
    def per_layer(self) -> int:
        """Tensors a layer keeps: an LSTM has a cell beside its state."""
        return 2 if self.kind == "lstm" else 1

    def forward(
        self, inputs: Float[Tensor, "row query input"], state: tuple[Tensor, ...]
    ) -> tuple[Float[Tensor, "row query hidden"], tuple[Tensor, ...]]:
        """The top states of one step or of many at once, and the state to go on from."""
        after: list[Tensor] = []
        x = inputs
        for depth, rnn in enumerate(self.layers):
            mine = state[depth * self.per_layer : (depth + 1) * self.per_layer]
            given = x if depth == 0 else self.dropout(x)
            out, last = rnn(given, _packed(mine))
            if self.norms:
                out = self.norms[depth](out)
            x = out + x if self.residual and depth else out
            after += [t.squeeze(0) for t in (last if isinstance(last, tuple) else (last,))]
        return x, tuple(after)

    def top(self, state: tuple[Tensor, ...]) -> Float[Tensor, "row hidden"]:
        """The hidden state of the top layer: what asks before the stack has moved."""
        return state[-self.per_layer]


def _packed(mine: tuple[Tensor, ...]) -> Tensor | tuple[Tensor, Tensor]:
    """As torch's RNNs want it: (1, row, hidden), in a pair for an LSTM."""
    if len(mine) == 2:
        return mine[0].unsqueeze(0).contiguous(), mine[1].unsqueeze(0).contiguous()
    return mine[0].unsqueeze(0).contiguous()


class RecurrentEncoder(nn.Module):
    """Reads the source from one end or from both. Padding never enters the recurrence."""

    def __init__(self, config: EncoderConfig, input: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.directions = 2 if config.bidirectional else 1
        self.width = config.hidden * self.directions
        self.layers = Modules(
            CELLS[config.kind](
                input if depth == 0 else self.width,
                config.hidden,
                batch_first=True,
                bidirectional=config.bidirectional,
            )
            for depth in range(config.layers)
        )
        self.norms = Modules(
            nn.LayerNorm(self.width) for _ in range(config.layers if config.layer_norm else 0)
        )
        self.dropout = nn.Dropout(dropout)
        self.residual = config.residual

    def forward(self, inputs: Float[Tensor, "batch key input"], keep: Bool[Tensor, "batch key"]) -> Read:
        packed = pack_padded_sequence(inputs, keep.sum(dim=1).cpu(), batch_first=True, enforce_sorted=False)
        hidden: list[Tensor] = []
        cells: list[Tensor] = []
        x: Tensor = packed.data
        for depth, rnn in enumerate(self.layers):
            given = x if depth == 0 else self.dropout(x)
            out, last = rnn(_with(packed, given))
            h, *c = last if isinstance(last, tuple) else (last,)
            hidden.append(_beside(h))
            cells += [_beside(cell) for cell in c]
            data = self.norms[depth](out.data) if self.norms else out.data
            x = data + x if self.residual and depth else data
        states, _ = pad_packed_sequence(_with(packed, x), batch_first=True, total_length=keep.shape[1])
        return Read(states, states, keep, tuple(hidden), tuple(cells))


def _with(packed: PackedSequence, data: Tensor) -> PackedSequence:
    return PackedSequence(data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)


def _beside(last: Float[Tensor, "direction batch hidden"]) -> Float[Tensor, "batch both"]:
    """The directions' final states side by side, each sentence's own (never viewed into one another)."""
    return torch.cat(list(last), dim=-1)

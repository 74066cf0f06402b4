"""Stacks of plain RNNs, GRUs or LSTMs, through torch's fused kernels, and the encoder made of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from heedful import native
from heedful.config import EncoderConfig
from heedful.layers.dropout import Dropout
from heedful.layers.gru_packed import gru_packed, last_states, run
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
        self.dropout = Dropout(dropout)
        self.residual = residual
        self.bytes: list[tuple[native.Int8, native.Int8]] = []  # see `to_bytes`

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
            quick = self._quick(given)
            out, last = self._one(depth, given, mine) if quick else rnn(given, _packed(mine))
            if self.norms:
                out = self.norms[depth](out)
            x = out + x if self.residual and depth else out
            after += [t.squeeze(0) for t in (last if isinstance(last, tuple) else (last,))]
        return x, tuple(after)

    def _quick(self, x: Tensor) -> bool:
        """May the kernels take this step? They do one at a time, of gated cells, and lead nothing back."""
        free = not torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")
        return self.kind != "rnn" and x.shape[1] == 1 and free and native.fits(x)

    def to_bytes(self) -> None:
        """Hold the gated cells' matrices in bytes too, for single steps."""
        if self.kind != "rnn":
            self.bytes = [_in_bytes(rnn.all_weights[0]) for rnn in self.layers]

    def _one(self, depth: int, x: Tensor, mine: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """One step without the machinery that torch starts for it."""
        h = mine[0].contiguous()
        if self.bytes:
            gi, gh = self.bytes[depth][0](x[:, 0]), self.bytes[depth][1](h)
        else:
            into, hidden, into_bias, hidden_bias = self.layers[depth].all_weights[0]
            gi = nn.functional.linear(x[:, 0], into, into_bias)
            gh = nn.functional.linear(h, hidden, hidden_bias)
        out = torch.empty_like(h)
        if self.kind == "gru":
            native.gru(gi, gh, h, out, torch.empty_like(gi))
            return out[:, None], (out[None],)
        cell, shown = torch.empty_like(h), torch.empty_like(h)
        native.lstm(gi.add_(gh), mine[1].contiguous(), out, cell, shown)
        return out[:, None], (out[None], cell[None])

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
        self.dropout = Dropout(dropout)
        self.residual = config.residual
        self.bytes: list[list[tuple[native.Int8, native.Int8]]] = []  # see `to_bytes`

    def forward(self, inputs: Float[Tensor, "batch key input"], keep: Bool[Tensor, "batch key"]) -> Read:
        packed = pack_padded_sequence(inputs, keep.sum(dim=1).cpu(), batch_first=True, enforce_sorted=False)
        hidden: list[Tensor] = []
        cells: list[Tensor] = []
        x: Tensor = packed.data
        for depth, rnn in enumerate(self.layers):
            given = x if depth == 0 else self.dropout(x)
            if self._quick(given):
                data, h = self._packed(depth, given, packed)
                hidden.append(h)
            else:
                out, last = rnn(_with(packed, given))
                h, *c = last if isinstance(last, tuple) else (last,)
                hidden.append(_beside(h))
                cells += [_beside(cell) for cell in c]
                data = out.data
            data = self.norms[depth](data) if self.norms else data
            x = data + x if self.residual and depth else data
        states, _ = pad_packed_sequence(_with(packed, x), batch_first=True, total_length=keep.shape[1])
        return Read(states, states, keep, tuple(hidden), tuple(cells))

    def _quick(self, x: Tensor) -> bool:
        """May `gru_packed` read? It knows GRUs."""
        free = not torch.is_autocast_enabled("cpu")
        return isinstance(self.layers[0], nn.GRU) and free and native.fits(x)

    def to_bytes(self) -> None:
        """Hold the GRUs' matrices in bytes, for reading without gradients."""
        if isinstance(self.layers[0], nn.GRU):
            self.bytes = [[_in_bytes(each) for each in rnn.all_weights] for rnn in self.layers]

    def _packed(self, depth: int, x: Tensor, packed: PackedSequence) -> tuple[Tensor, Tensor]:
        """One layer by `gru_packed`: states at every word, and the last ones, directions side by side."""
        sizes, back = packed.batch_sizes.tolist(), packed.unsorted_indices
        outs, lasts = [], []
        for direction, weights in enumerate(self.layers[depth].all_weights):
            reverse = direction == 1
            if self.bytes:
                into, hidden = self.bytes[depth][direction]
                out = _read(into(x), sizes, hidden, reverse)
            else:
                gi = nn.functional.linear(x, weights[0], weights[2])
                out = gru_packed(gi, weights[1], weights[3], sizes, reverse)
            outs.append(out)
            lasts.append(last_states(out, sizes, reverse))
        return torch.cat(outs, dim=-1), torch.cat(lasts, dim=-1)[back]


def _in_bytes(weights: list[nn.Parameter]) -> tuple[native.Int8, native.Int8]:
    into, hidden, into_bias, hidden_bias = weights
    return native.Int8(into, into_bias), native.Int8(hidden, hidden_bias)


def _read(gi: Tensor, sizes: list[int], hidden: native.Int8, reverse: bool) -> Tensor:
    """A GRU in bytes over packed sentences."""
    out = native.gru_read(gi, sizes, hidden, reverse)
    if out is not None:
        return out
    before, new = gi.new_empty(2, len(gi), gi.shape[1] // 3)
    return run(gi, sizes, hidden, reverse, before, new, torch.empty_like(gi))


def _with(packed: PackedSequence, data: Tensor) -> PackedSequence:
    return PackedSequence(data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)


def _beside(last: Float[Tensor, "direction batch hidden"]) -> Float[Tensor, "batch both"]:
    """The directions' final states side by side, each sentence's own (never viewed into one another)."""
    return torch.cat(list(last), dim=-1)

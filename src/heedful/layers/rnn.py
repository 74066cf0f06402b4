"""Recurrent encoder and decoder, through torch's fused kernels."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.config import DecoderConfig, EncoderConfig


class Read(NamedTuple):
    """The states of every position (zero where padded) and the final state of each direction's top layer."""

    states: Float[Tensor, "batch key width"]
    last: Float[Tensor, "direction batch hidden"]


class RNNEncoder(nn.Module):
    """A GRU over the source, from one end or from both. Padding never enters the recurrence."""

    def __init__(self, config: EncoderConfig, input: int) -> None:
        super().__init__()
        self.directions = 2 if config.bidirectional else 1
        self.hidden = config.hidden
        self.rnn = nn.GRU(
            input, config.hidden, config.layers, batch_first=True, bidirectional=config.bidirectional
        )

    @property
    def width(self) -> int:
        return self.hidden * self.directions

    def forward(self, inputs: Float[Tensor, "batch key input"], keep: Bool[Tensor, "batch key"]) -> Read:
        lengths = keep.sum(dim=1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        states, final = self.rnn(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=keep.shape[1])
        return Read(padded, final[-self.directions :])


class RNNDecoder(nn.Module):
    """A GRU that starts from the encoder's backward state: `s_0 = tanh(W h_1_backward)`."""

    def __init__(self, config: DecoderConfig, input: int, start: int) -> None:
        super().__init__()
        self.layers = config.layers
        self.rnn = nn.GRU(input, config.hidden, config.layers, batch_first=True)
        self.start = nn.Linear(start, config.hidden)

    def first(self, last: Float[Tensor, "batch hidden"]) -> Float[Tensor, "layer batch state"]:
        return torch.tanh(self.start(last)).expand(self.layers, -1, -1).contiguous()

    def forward(
        self, inputs: Float[Tensor, "batch query input"], state: Float[Tensor, "layer batch state"]
    ) -> tuple[Float[Tensor, "batch query state"], Float[Tensor, "layer batch state"]]:
        """The top states of one step or of many at once, and the state to go on from."""
        tops, state = self.rnn(inputs, state)
        return tops, state

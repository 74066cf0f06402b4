"""The recurrent encoder reads from both ends of each sentence, not of the padding."""

from __future__ import annotations

import torch
from torch import nn

from heedful.config import EncoderConfig
from heedful.layers.rnn import RNNEncoder


def test_the_backward_state_starts_at_the_sentences_own_end() -> None:
    torch.manual_seed(1)
    encoder = RNNEncoder(EncoderConfig(hidden=3), input=5).double()
    inputs = torch.randn(2, 7, 5, dtype=torch.float64)
    keep = torch.arange(7) < torch.tensor([[7], [4]])
    read = encoder(inputs, keep)
    alone, last = encoder.rnn(inputs[1:, :4])
    torch.testing.assert_close(read.states[1, :4], alone[0])
    torch.testing.assert_close(read.last[:, 1], last[:, 0])
    torch.testing.assert_close(read.last[1, 1], read.states[1, 0, 3:])  # the backward state of word 1
    assert not read.states[1, 4:].any()


def test_a_deep_encoder_gives_its_top_layers_last_states() -> None:
    encoder = RNNEncoder(EncoderConfig(hidden=3, layers=2, bidirectional=False), input=5)
    inputs = torch.randn(1, 4, 5)
    read = encoder(inputs, torch.ones(1, 4, dtype=torch.bool))
    assert isinstance(encoder.rnn, nn.GRU)
    torch.testing.assert_close(read.last[-1], read.states[:, -1])
    assert encoder.width == 3

"""The recurrent encoder reads from both ends of each sentence, not of the padding; stacks."""

from __future__ import annotations

import pytest
import torch

from heedful.config import EncoderConfig
from heedful.layers.recurrent import Cell, RecurrentEncoder, Stack


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_the_backward_state_starts_at_the_sentences_own_end(kind: str) -> None:
    torch.manual_seed(1)
    encoder = RecurrentEncoder(EncoderConfig.model_validate({"kind": kind, "hidden": 3}), input=5).double()
    inputs = torch.randn(2, 7, 5, dtype=torch.float64)
    keep = torch.arange(7) < torch.tensor([[7], [4]])
    read = encoder(inputs, keep)
    alone, last = encoder.layers[0](inputs[1:, :4])
    hidden = last[0] if kind == "lstm" else last
    torch.testing.assert_close(read.keys[1, :4], alone[0])
    torch.testing.assert_close(read.hidden[-1][1], torch.cat([hidden[0, 0], hidden[1, 0]]))
    torch.testing.assert_close(read.hidden[-1][1, 3:], read.keys[1, 0, 3:])  # the backward state of word 1
    assert not read.keys[1, 4:].any()
    assert len(read.cells) == (kind == "lstm")


def test_the_mean_is_over_real_positions_only() -> None:
    encoder = RecurrentEncoder(EncoderConfig(hidden=3), input=5)
    keep = torch.arange(6) < torch.tensor([[6], [2]])
    read = encoder(torch.randn(2, 6, 5), keep)
    torch.testing.assert_close(read.mean()[1], read.keys[1, :2].mean(dim=0))


def test_a_residual_layer_adds_its_input_and_a_norm_normalises() -> None:
    torch.manual_seed(2)
    plain = Stack("gru", 4, 4, 2)
    added = Stack("gru", 4, 4, 2, residual=True)
    added.load_state_dict(plain.state_dict())
    x, state = torch.randn(3, 5, 4), (torch.zeros(3, 4), torch.zeros(3, 4))
    below, _ = plain.layers[0](x, torch.zeros(1, 3, 4))
    torch.testing.assert_close(added(x, state)[0], plain(x, state)[0] + below)
    normed = Stack("gru", 4, 4, 1, layer_norm=True)(x, state[:1])[0]
    torch.testing.assert_close(normed.mean(-1), torch.zeros(3, 5), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("slopes", [True, False], ids=["with gradients", "by the kernels"])
def test_many_steps_at_once_equal_one_after_another(kind: Cell, slopes: bool) -> None:
    stack = Stack(kind, 4, 5, 3, residual=True, layer_norm=True)
    x = torch.randn(2, 6, 4)
    state = tuple(torch.randn(2, 5) for _ in range(3 * stack.per_layer))
    whole, last = stack(x, state)
    with torch.set_grad_enabled(slopes):
        for t in range(6):
            one, state = stack(x[:, t : t + 1], state)
            torch.testing.assert_close(one[:, 0], whole[:, t], rtol=1e-5, atol=1e-6)
    for a, b in zip(state, last, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    assert torch.equal(stack.top(last), last[2 * stack.per_layer])

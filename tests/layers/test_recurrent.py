"""Recurrent stacks, and the encoder whose two directions start at the ends of each sentence."""

from __future__ import annotations

import pytest
import torch

from heedful.config import EncoderConfig
from heedful.layers.recurrent import CellKind, RecurrentEncoder, RecurrentStack


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_the_backward_direction_starts_at_the_last_word_of_each_sentence(kind: str) -> None:
    torch.manual_seed(1)
    encoder = RecurrentEncoder(EncoderConfig.model_validate({"kind": kind, "hidden": 3}), input_size=5).double()
    inputs = torch.randn(2, 7, 5, dtype=torch.float64)
    keep = torch.arange(7) < torch.tensor([[7], [4]])
    output = encoder(inputs, keep)
    expected, final = encoder.layers[0](inputs[1:, :4])
    hidden = final[0] if kind == "lstm" else final
    torch.testing.assert_close(output.keys[1, :4], expected[0])
    torch.testing.assert_close(output.hidden[-1][1], torch.cat([hidden[0, 0], hidden[1, 0]]))
    torch.testing.assert_close(output.hidden[-1][1, 3:], output.keys[1, 0, 3:])  # the backward state of word 1
    assert not output.keys[1, 4:].any()
    assert len(output.cells) == (kind == "lstm")


def test_the_mean_ignores_padding() -> None:
    encoder = RecurrentEncoder(EncoderConfig(hidden=3), input_size=5)
    keep = torch.arange(6) < torch.tensor([[6], [2]])
    output = encoder(torch.randn(2, 6, 5), keep)
    torch.testing.assert_close(output.mean()[1], output.keys[1, :2].mean(dim=0))


def test_residual_connections_and_layer_norms() -> None:
    torch.manual_seed(2)
    plain = RecurrentStack("gru", 4, 4, 2)
    residual = RecurrentStack("gru", 4, 4, 2, residual=True)
    residual.load_state_dict(plain.state_dict())
    x, state = torch.randn(3, 5, 4), (torch.zeros(3, 4), torch.zeros(3, 4))
    below, _ = plain.layers[0](x, torch.zeros(1, 3, 4))
    torch.testing.assert_close(residual(x, state)[0], plain(x, state)[0] + below)
    normalized = RecurrentStack("gru", 4, 4, 1, layer_norm=True)(x, state[:1])[0]
    torch.testing.assert_close(normalized.mean(-1), torch.zeros(3, 5), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("gradients", [True, False], ids=["with gradients", "by the kernels"])
def test_several_steps_equal_single_steps(kind: CellKind, gradients: bool) -> None:
    stack = RecurrentStack(kind, 4, 5, 3, residual=True, layer_norm=True)
    x = torch.randn(2, 6, 4)
    state = tuple(torch.randn(2, 5) for _ in range(3 * stack.states_per_layer))
    parallel, final = stack(x, state)
    with torch.set_grad_enabled(gradients):
        for t in range(6):
            step_output, state = stack(x[:, t : t + 1], state)
            torch.testing.assert_close(step_output[:, 0], parallel[:, t], rtol=1e-5, atol=1e-6)
    for a, b in zip(state, final, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    assert torch.equal(stack.top(final), final[2 * stack.states_per_layer])

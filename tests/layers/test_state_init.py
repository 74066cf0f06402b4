"""The initial state of a recurrent decoder, by each of its five methods."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import small_models
from heedful.layers.state import EncoderOutput
from heedful.layers.state_init import StateInit

BATCH, KEYS = 2, 4


def make(method: str, kind: str = "gru", **changes: Any) -> StateInit:
    config = small_models.small_preset(
        "bigru-gru", encoder__kind=kind, decoder__kind=kind, decoder__state_init=method, **changes
    )
    torch.manual_seed(0)
    return StateInit(config).double()


def encoder_output(layers: int = 1, lstm: bool = False, width: int = 6) -> EncoderOutput:
    torch.manual_seed(1)
    keys = torch.randn(BATCH, KEYS, width, dtype=torch.float64)
    keep = torch.arange(KEYS) < torch.tensor([[KEYS], [2]])
    finals = [torch.randn(BATCH, width, dtype=torch.float64) for _ in range(2 * layers)]
    return EncoderOutput(keys, keys, keep, tuple(finals[:layers]), tuple(finals[layers:]) if lstm else ())


def project(init: StateInit, index: int, x: Tensor) -> Tensor:
    layer = init.projections[index]
    assert isinstance(layer, nn.Linear)
    return x @ layer.weight.T + layer.bias


def test_zeros() -> None:
    (state,) = make("zeros")(encoder_output())
    assert state.shape == (BATCH, 6)
    assert not state.any()


def test_backward_takes_the_backward_half_of_the_top_layer() -> None:
    init, output = make("backward"), encoder_output()
    (state,) = init(output)
    torch.testing.assert_close(state, torch.tanh(project(init, 0, output.hidden[-1][:, 3:])))


def test_mean_takes_the_mean_over_real_positions() -> None:
    init, output = make("mean"), encoder_output()
    (state,) = init(output)
    mean = torch.stack([output.keys[0].mean(0), output.keys[1, :2].mean(0)])
    torch.testing.assert_close(state, torch.tanh(project(init, 0, mean)))


def test_bridge_passes_states_of_equal_size_on() -> None:
    output = encoder_output(layers=2, lstm=True)
    states = make("bridge", "lstm", encoder__layers=2, decoder__layers=2)(output)
    expected = output.hidden[0], output.cells[0], output.hidden[1], output.cells[1]
    assert all(torch.equal(one, other) for one, other in zip(states, expected, strict=True))


def test_bridge_projects_states_of_another_size() -> None:
    init = make("bridge", "lstm", decoder__hidden=8)
    output = encoder_output(lstm=True)
    hidden, cell = init(output)
    torch.testing.assert_close(hidden, torch.tanh(project(init, 0, output.hidden[0])))
    torch.testing.assert_close(cell, project(init, 1, output.cells[0]))


def test_extra_layers_of_a_deeper_decoder_start_from_the_top_layer() -> None:
    output = encoder_output(layers=2)
    states = make("bridge", encoder__layers=2, decoder__layers=4)(output)
    expected = output.hidden[0], output.hidden[1], output.hidden[1], output.hidden[1]
    assert all(torch.equal(one, other) for one, other in zip(states, expected, strict=True))


def test_top_gives_every_layer_the_top_state() -> None:
    output = encoder_output(layers=2, lstm=True)
    states = make("top", "lstm", encoder__layers=2, decoder__layers=3)(output)
    assert all(torch.equal(h, output.hidden[1]) for h in states[::2])
    assert all(torch.equal(c, output.cells[1]) for c in states[1::2])


@pytest.mark.parametrize("method", ["backward", "mean"])
def test_an_lstm_gets_a_cell_of_its_own(method: str) -> None:
    hidden, cell = make(method, "lstm")(encoder_output(lstm=True))
    assert hidden.shape == cell.shape
    assert not torch.allclose(hidden, cell)

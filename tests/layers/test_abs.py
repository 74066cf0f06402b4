"""ABS (Rush 2015) against its equations in plain loops."""

from __future__ import annotations

import pytest
import torch

import small_models
from heedful.attention import NO_HOOKS
from heedful.data.tokenizer import START
from heedful.layers.abs import AbsDecoder, moving_average
from heedful.layers.state import EncoderOutput
from layers.loops import dot, plus, softmax, tanh, times, weighted_sum


@pytest.mark.parametrize("window", [0, 1, 2, 7])
def test_the_moving_average_counts_real_positions_alone(window: int) -> None:
    torch.manual_seed(0)
    x, lengths = torch.randn(3, 5, 2, dtype=torch.float64), [5, 3, 0]
    keep = torch.arange(5) < torch.tensor(lengths)[:, None]
    averages = moving_average(x, keep, window)
    for row, length in enumerate(lengths):
        for i in range(length):
            near = [x[row, j] for j in range(length) if abs(i - j) <= window]
            torch.testing.assert_close(averages[row, i], sum(near) / len(near))


def test_a_step_is_that_of_the_paper() -> None:
    """`h = tanh(U [last C embeddings])`, `p_i = softmax(x_i . P G y_c)`, features `[h; sum_i p_i xbar_i]`."""
    config = small_models.small_preset("abs", decoder__context_words=3, decoder__smoothing_window=1)
    decoder = small_models.build_model(config).decoder
    assert isinstance(decoder, AbsDecoder)
    torch.manual_seed(1)
    x = torch.randn(1, 4, 6, dtype=torch.float64)
    state = decoder.initial_state(EncoderOutput(x, x, torch.ones(1, 4, dtype=torch.bool)))
    output = decoder(state, torch.tensor([[7, 8]]), NO_HOOKS)
    rows = x[0].tolist()
    near = [rows[max(0, i - 1) : i + 2] for i in range(4)]
    averages = [[value / len(group) for value in plus(*group)] for group in near]
    projection = decoder.attention.score.get_parameter("key.weight")
    for step, window in enumerate(([START, START, 7], [START, 7, 8])):
        h_input = decoder.embedding.weight[window].flatten().tolist()
        query = decoder.context_embedding.weight[window].flatten().tolist()
        h = tanh(times(decoder.hidden.weight, h_input, decoder.hidden.bias))
        weights = softmax([dot(query, times(projection, row)) for row in rows])
        expected = [*h, *weighted_sum(weights, averages)]
        assert output.features[0, step].tolist() == pytest.approx(expected, abs=1e-12)
    assert output.state.hidden[0].tolist() == [[START, 7, 8]]

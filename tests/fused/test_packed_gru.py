"""The packed GRU: the same states and gradients as torch's, for any lengths."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from heedful.config import EncoderConfig
from heedful.fused.packed_gru import final_states, packed_gru, supports
from heedful.layers import recurrent
from heedful.layers.recurrent import RecurrentEncoder
from heedful.layers.state import EncoderOutput

LENGTHS = ([3], [1, 1], [2, 5, 1, 5, 4], [7, 7, 7])


def encode(encoder: RecurrentEncoder, inputs: Tensor, lengths: list[int]) -> tuple[EncoderOutput, list[Tensor]]:
    """Return the encoder's output and the gradients of the inputs and of every weight."""
    x = inputs.clone().requires_grad_()
    keep = torch.arange(inputs.shape[1]) < torch.tensor(lengths)[:, None]
    output = encoder(x, keep)
    torch.manual_seed(5)
    loss = sum((t * torch.randn(t.shape)).sum() for t in (output.keys, *output.hidden))
    return output, list(torch.autograd.grad(loss, [x, *encoder.parameters()]))


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_states_and_gradients_are_those_of_torch(
    lengths: list[int], bidirectional: bool, layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    config = EncoderConfig(kind="gru", hidden=9, layers=layers, bidirectional=bidirectional)
    encoder = RecurrentEncoder(config, 4)
    inputs = torch.randn(len(lengths), max(lengths), 4)
    output, gradients = encode(encoder, inputs, lengths)
    monkeypatch.setattr(recurrent, "packed_gru_supports", lambda *_: False)
    expected, expected_gradients = encode(encoder, inputs, lengths)
    torch.testing.assert_close(output.keys, expected.keys, rtol=1e-5, atol=3e-6)
    pairs = zip([*output.hidden, *gradients], [*expected.hidden, *expected_gradients], strict=True)
    for actual, other in pairs:
        torch.testing.assert_close(actual, other, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("reverse", [False, True])
def test_in_double_precision_it_equals_a_loop_of_cells(reverse: bool) -> None:
    torch.manual_seed(0)
    sizes = [3, 3, 2, 1]  # sentences of 4, 3 and 2 words
    cell, words = nn.GRUCell(5, 2).double(), torch.randn(9, 5, dtype=torch.float64)
    starts = [0, 3, 6, 8]
    expected = torch.zeros(9, 2, dtype=torch.float64)
    for row in range(3):
        rows = [start + row for start, size in zip(starts, sizes, strict=True) if row < size]
        h = torch.zeros(1, 2, dtype=torch.float64)
        for word in reversed(rows) if reverse else rows:
            h = cell(words[word : word + 1], h)
            expected = expected.index_put((torch.tensor([word]),), h)
    input_gates = nn.functional.linear(words, cell.weight_ih, cell.bias_ih)
    actual = packed_gru(input_gates, cell.weight_hh, cell.bias_hh, sizes, reverse)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)
    gradients, expected_gradients = (
        torch.autograd.grad(x.sin().sum(), list(cell.parameters())) for x in (actual, expected)
    )
    for gradient, other in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(gradient, other, rtol=0, atol=1e-12)


def test_backward_may_run_only_once() -> None:
    gates = torch.randn(3, 6, requires_grad=True)
    loss = packed_gru(gates, torch.randn(6, 2), torch.randn(6), [2, 1]).sum()
    loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]
    with pytest.raises(RuntimeError, match="may run only once"):
        loss.backward()  # type: ignore[no-untyped-call]


def test_final_states_are_the_last_of_each_sentence() -> None:
    sizes = [3, 2, 1]  # lengths 3, 2, 1
    states = torch.arange(6.0)[:, None]
    assert final_states(states, sizes, reverse=False).flatten().tolist() == [5, 4, 2]
    assert final_states(states, sizes, reverse=True).flatten().tolist() == [0, 1, 2]


@pytest.mark.usefixtures("as_users_run")
def test_it_supports_single_precision_without_autocast() -> None:
    x = torch.randn(3, 4)
    assert not supports(x.double())
    with torch.autocast("cpu", torch.bfloat16):
        assert not supports(x)


def test_int8_states_are_close() -> None:
    torch.manual_seed(0)
    encoder = RecurrentEncoder(EncoderConfig(kind="gru", hidden=64), 32)
    inputs, keep = torch.randn(5, 11, 32), torch.ones(5, 11, dtype=torch.bool)
    with torch.no_grad():
        exact = encoder(inputs, keep).keys
        encoder.quantize()
        quantized = encoder(inputs, keep).keys
    assert 0 < (quantized - exact).norm() < 0.02 * exact.norm()

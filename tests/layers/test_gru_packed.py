"""Reading with our own GRU: the same states and gradients as torch's, whatever the lengths."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from heedful.config import EncoderConfig
from heedful.layers.recurrent import RecurrentEncoder
from heedful.layers.state import Read

LENGTHS = ([3], [1, 1], [2, 5, 1, 5, 4], [7, 7, 7])


def read(encoder: RecurrentEncoder, inputs: Tensor, lengths: list[int]) -> tuple[Read, list[Tensor]]:
    x = inputs.clone().requires_grad_()
    keep = torch.arange(inputs.shape[1]) < torch.tensor(lengths)[:, None]
    found = encoder(x, keep)
    torch.manual_seed(5)
    loss = sum((t * torch.randn(t.shape)).sum() for t in (found.keys, *found.hidden))
    return found, list(torch.autograd.grad(loss, [x, *encoder.parameters()]))


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_states_and_gradients_are_torchs(
    lengths: list[int], bidirectional: bool, layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    config = EncoderConfig(kind="gru", hidden=9, layers=layers, bidirectional=bidirectional)
    encoder = RecurrentEncoder(config, 4)
    inputs = torch.randn(len(lengths), max(lengths), 4)
    mine, slopes = read(encoder, inputs, lengths)
    monkeypatch.setattr(RecurrentEncoder, "_quick", lambda *_: False)
    theirs, wanted = read(encoder, inputs, lengths)
    torch.testing.assert_close(mine.keys, theirs.keys, rtol=1e-5, atol=3e-6)
    for one, other in zip([*mine.hidden, *slopes], [*theirs.hidden, *wanted], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=2e-5)


def test_in_bytes_it_reads_nearly_the_same() -> None:
    torch.manual_seed(0)
    encoder = RecurrentEncoder(EncoderConfig(kind="gru", hidden=64), 32)
    inputs, keep = torch.randn(5, 11, 32), torch.ones(5, 11, dtype=torch.bool)
    with torch.no_grad():
        exact = encoder(inputs, keep).keys
        encoder.to_bytes()
        rough = encoder(inputs, keep).keys
    assert 0 < (rough - exact).norm() < 0.02 * exact.norm()

"""GRU and LSTM cells, forward and backward: every C build against torch and autograd."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from heedful import kernels

pytestmark = pytest.mark.usefixtures("c_build")
SIZES = [(1, 1), (7, 13), (100, 512)]


def close(actual: Tensor, expected: Tensor, atol: float = 3e-6) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("size", SIZES)
def test_lstm_cell_forward_and_backward(size: tuple[int, int], use_torch: Callable[[], None]) -> None:
    rows, hidden = size
    pre_activations = 3 * torch.randn(rows, 4 * hidden)
    c, dh, dc = torch.randn(3, rows, hidden)

    def run() -> list[Tensor]:
        gates, dc_old = pre_activations.clone(), dc.clone()
        out, cell, tanh_cell = torch.empty(3, rows, hidden)
        kernels.lstm_cell(gates, c, out, cell, tanh_cell)
        kernels.lstm_cell_backward(gates, c, tanh_cell, dh, dc_old)
        return [out, cell, tanh_cell, gates, dc_old]

    from_c = run()
    use_torch()
    for actual, expected in zip(from_c, run(), strict=True):
        close(actual, expected, 1e-5)
    x, old = pre_activations.clone().requires_grad_(), c.clone().requires_grad_()
    i, f, g, o = x.chunk(4, dim=-1)
    cell = f.sigmoid() * old + i.sigmoid() * g.tanh()
    out = o.sigmoid() * cell.tanh()
    (out * dh + cell * dc).sum().backward()
    for actual, autograd in zip(from_c, (out, cell, cell.tanh(), x.grad, old.grad), strict=True):
        assert autograd is not None
        close(actual, autograd.detach(), 1e-5)


@pytest.mark.parametrize("size", SIZES)
def test_gru_cell_forward_and_backward(size: tuple[int, int], use_torch: Callable[[], None]) -> None:
    rows, hidden = size
    gi, gh = 3 * torch.randn(2, rows, 3 * hidden)
    h, dout = torch.randn(2, rows, hidden)

    def run() -> list[Tensor]:
        out, dh = torch.empty(2, rows, hidden)
        gates, dgi, dgh = torch.empty(3, rows, 3 * hidden)
        kernels.gru_cell(gi, gh, h, out, gates)
        kernels.gru_cell_backward(gates, gh[:, 2 * hidden :], h, dout, dgi, dgh, dh)
        return [out, gates, dgi, dgh, dh]

    from_c = run()
    use_torch()
    for actual, expected in zip(from_c, run(), strict=True):
        close(actual, expected)
    leaves = [t.clone().requires_grad_() for t in (gi, gh, h)]
    (ir, iz, ic), (hr, hz, hc) = (t.chunk(3, dim=-1) for t in leaves[:2])
    r, z = torch.sigmoid(ir + hr), torch.sigmoid(iz + hz)
    out = (1 - z) * torch.tanh(ic + r * hc) + z * leaves[2]
    close(from_c[0], out)
    for actual, gradient in zip(from_c[2:], torch.autograd.grad(out, leaves, dout), strict=True):
        close(actual, gradient)

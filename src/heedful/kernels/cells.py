"""The element-wise part of GRU and LSTM cells, after their matrix products, and its backward pass."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.kernels import loader
from heedful.kernels.guards import admits, admits_rows


def gru_cell(
    gi: Float[Tensor, "row gates"],
    gh: Float[Tensor, "row gates"],
    h: Float[Tensor, "row hidden"],
    out: Float[Tensor, "row hidden"],
    gates: Float[Tensor, "row gates"],
) -> None:
    """Compute one GRU step from `gi = W_i x + b_i` and `gh = W_h h + b_h` into `out`.

    `gates` receives the activated reset gate, update gate and candidate, which `gru_cell_backward` needs.
    """
    library = loader.library()
    rows, n = h.shape
    if library is not None and admits((rows, 3 * n), gi, gh, gates) and admits((rows, n), h, out):
        library.heed_gru_cell(gi.data_ptr(), gh.data_ptr(), h.data_ptr(), out.data_ptr(), gates.data_ptr(), rows, n)
        return
    ir, iz, ic = gi.chunk(3, dim=-1)
    hr, hz, hc = gh.chunk(3, dim=-1)
    r, z = torch.sigmoid(ir + hr), torch.sigmoid(iz + hz)
    c = torch.tanh(ic + r * hc)
    torch.cat([r, z, c], dim=-1, out=gates)
    torch.lerp(c, h, z, out=out)


def gru_cell_backward(
    gates: Float[Tensor, "row gates"],
    hn: Float[Tensor, "row hidden"],
    h: Float[Tensor, "row hidden"],
    dout: Float[Tensor, "row hidden"],
    dgi: Float[Tensor, "row gates"],
    dgh: Float[Tensor, "row gates"],
    dh: Float[Tensor, "row hidden"],
) -> None:
    """Backward pass of `gru_cell`: from the gradient `dout` of its output to `dgi`, `dgh` and `dh`.

    `hn` is the last third of `gh`. `dh` is without the part that flows through `gh`. `dgh` may be `gates` itself.
    """
    library = loader.library()
    rows, n = h.shape
    if (
        library is not None
        and admits((rows, 3 * n), gates, dgi, dgh)
        and admits((rows, n), h, dout, dh)
        and admits_rows((rows, n), hn)
    ):
        library.heed_gru_cell_backward(
            gates.data_ptr(), hn.data_ptr(), hn.stride(0), h.data_ptr(), dout.data_ptr(),
            dgi.data_ptr(), dgh.data_ptr(), dh.data_ptr(), rows, n,
        )  # fmt: skip
        return
    r, z, c = gates.chunk(3, dim=-1)
    dc = dout * (1 - z) * (1 - c * c)
    dz = dout * (h - c) * z * (1 - z)
    dr = dc * hn * r * (1 - r)
    torch.mul(dout, z, out=dh)
    torch.cat([dr, dz, dc], dim=-1, out=dgi)
    torch.cat([dr, dz, dc * r], dim=-1, out=dgh)


def lstm_cell(
    gates: Float[Tensor, "row gates"],
    c: Float[Tensor, "row hidden"],
    out: Float[Tensor, "row hidden"],
    cell: Float[Tensor, "row hidden"],
    tanh_cell: Float[Tensor, "row hidden"],
) -> None:
    """Compute one LSTM step from `gates = W_i x + b_i + W_h h + b_h`, which are activated in place.

    `out` is the new hidden state, `cell` the new cell; `tanh_cell` is kept for `lstm_cell_backward`.
    """
    library = loader.library()
    rows, n = c.shape
    if library is not None and admits((rows, 4 * n), gates) and admits((rows, n), c, out, cell, tanh_cell):
        library.heed_lstm_cell(
            gates.data_ptr(), c.data_ptr(), out.data_ptr(), cell.data_ptr(), tanh_cell.data_ptr(), rows, n
        )
        return
    i, f, g, o = gates.chunk(4, dim=-1)
    for gate in (i, f, o):
        gate.sigmoid_()
    g.tanh_()
    torch.add(f * c, i * g, out=cell)
    torch.tanh(cell, out=tanh_cell)
    torch.mul(o, tanh_cell, out=out)


def lstm_cell_backward(
    gates: Float[Tensor, "row gates"],
    c: Float[Tensor, "row hidden"],
    tanh_cell: Float[Tensor, "row hidden"],
    dh: Float[Tensor, "row hidden"],
    dc: Float[Tensor, "row hidden"],
) -> None:
    """Backward pass of `lstm_cell`, in place: gates become their gradients, `dc` that of the old cell."""
    library = loader.library()
    rows, n = c.shape
    if library is not None and admits((rows, 4 * n), gates) and admits((rows, n), c, tanh_cell, dh, dc):
        library.heed_lstm_cell_backward(
            gates.data_ptr(), c.data_ptr(), tanh_cell.data_ptr(), dh.data_ptr(), dc.data_ptr(), rows, n
        )
        return
    i, f, g, o = (gate.clone() for gate in gates.chunk(4, dim=-1))
    d = dc + dh * o * (1 - tanh_cell * tanh_cell)
    parts = [d * g * i * (1 - i), d * c * f * (1 - f), d * i * (1 - g * g), dh * tanh_cell * o * (1 - o)]
    torch.cat(parts, dim=-1, out=gates)
    torch.mul(d, f, out=dc)

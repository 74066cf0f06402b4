"""The LSTMN's cell (Cheng, Dong & Lapata 2016, eq. 5-10): an LSTM that reads its own past from a tape."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.attention import PLAIN, Look, Memory, Tape, Watch


class TapeState(NamedTuple):
    """What goes from step to step: the tape, the last summary `h~`, and the last hidden state and cell."""

    tape: Memory
    summary: Float[Tensor, "batch hidden"]
    hidden: Float[Tensor, "batch hidden"]
    cell: Float[Tensor, "batch hidden"]


class LSTMNCell(nn.Module):
    """`[i f o g] = W [h~_t; x_t]`, `m_t = f * m~_t + i * g`, `h_t = o * tanh m_t`."""

    def __init__(
        self, input: int, hidden: int, *, recall: bool = True, zero_slot: bool = False, site: str = "tape"
    ) -> None:
        super().__init__()
        self.tape = Tape(input, hidden, recall=recall, zero_slot=zero_slot, site=site)
        self.gates = nn.Linear(hidden + input, 4 * hidden)

    def start(self, x: Float[Tensor, "batch input"]) -> TapeState:
        zeros = x.new_zeros(len(x), self.tape.hidden)
        return TapeState(self.tape.start(x), zeros, zeros, zeros)

    def forward(
        self,
        x: Float[Tensor, "batch input"],
        state: TapeState,
        keep: Bool[Tensor, "batch"] | None = None,
        watch: Watch = PLAIN,
    ) -> tuple[TapeState, Look]:
        """One step; the new state's `hidden` is `h_t`. `keep` False marks padding, which is not written."""
        summary, past, look = self.tape.read(x, state.tape, state.summary, watch)
        i, f, o, g = self.gates(torch.cat([summary, x], dim=-1)).chunk(4, dim=-1)
        cell = f.sigmoid() * past + i.sigmoid() * g.tanh()
        hidden = o.sigmoid() * cell.tanh()
        tape = self.tape.write(state.tape, hidden, cell, keep)
        if keep is not None:  # over padding the state stands still
            real = keep[:, None]
            summary = torch.where(real, summary, state.summary)
            hidden, cell = torch.where(real, hidden, state.hidden), torch.where(real, cell, state.cell)
        return TapeState(tape, summary, hidden, cell), look

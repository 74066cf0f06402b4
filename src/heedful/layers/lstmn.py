"""The LSTMN (Cheng, Dong & Lapata 2016, eq. 5-10): an LSTM that reads its own past from a tape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention import PLAIN, Additive, Detail, Look, Memory, Tape, Watch
from heedful.attention.tape import asked_from, stands_at
from heedful.config import EncoderConfig
from heedful.layers.dropout import Dropout
from heedful.layers.modules import Modules
from heedful.layers.state import Read, side_by_side
from heedful.layers.tape_steps import Begun, Taped, Weights, tape_steps
from heedful.record import Site


class TapeState(NamedTuple):
    """What goes from step to step: the tape, the last summary `h~`, and the last hidden state and cell."""

    tape: Memory
    summary: Float[Tensor, "batch hidden"]
    hidden: Float[Tensor, "batch hidden"]
    cell: Float[Tensor, "batch hidden"]

    def detached(self) -> TapeState:
        """The same numbers, through which no gradient goes back."""
        keys, values, keep = self.tape.keys.detach(), self.tape.values.detach(), self.tape.keep
        return TapeState(Memory(keys, values, keep), *(t.detach() for t in self[1:]))

    def shortened(self, most: int, slots: int) -> TapeState:
        """With the last `most` slots only, beside the first `slots`, which stay."""
        count = self.tape.keep.shape[1]
        if count - slots <= most:
            return self
        kept = torch.tensor([*range(slots), *range(count - most, count)], device=self.hidden.device)
        tape = Memory(self.tape.keys[:, kept], self.tape.values[:, kept], self.tape.keep[:, kept])
        return self._replace(tape=tape)


class LSTMNCell(nn.Module):
    """`[i f o g] = W [h~_t; x_t]`, `m_t = f * m~_t + i * g`, `h_t = o * tanh m_t`."""

    def __init__(
        self,
        input: int,
        hidden: int,
        *,
        recall: bool = True,
        zero_slot: bool = False,
        recency: bool = False,
        site: str = "tape",
    ) -> None:
        super().__init__()
        self.tape = Tape(input, hidden, recall=recall, zero_slot=zero_slot, recency=recency, site=site)
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


class LSTMNRead(NamedTuple):
    """What a stack gives for every position (zeros at padding), the state after it, and what was read.

    A look's weights are (batch, position, 1, slot): first the slots that were there before (those of `state`,
    or the zero slot), then one for each position.
    """

    hidden: Float[Tensor, "batch step hidden"]
    state: tuple[TapeState, ...]
    looks: Mapping[str, Look]


class LSTMN(nn.Module):
    """Layers of LSTMN cells, one above the other, each with a tape of its own (Cheng 2016, §3.2).

    A layer reads what the one below gives; with `skip` it reads the words beside that. Between layers stands
    `dropout`.
    """

    def __init__(  # noqa: PLR0913 - one argument per independent choice
        self,
        input: int,
        hidden: int,
        layers: int = 1,
        *,
        recall: bool = True,
        zero_slot: bool = False,
        recency: bool = False,
        skip: bool = False,
        dropout: nn.Module | None = None,
        site: str = "tape",
    ) -> None:
        super().__init__()
        self.hidden, self.skip = hidden, skip
        widths = [input, *[hidden + input if skip else hidden] * (layers - 1)]
        self.cells = Modules(
            LSTMNCell(
                width, hidden, recall=recall, zero_slot=zero_slot, recency=recency, site=f"{site}.{depth}"
            )
            for depth, width in enumerate(widths)
        )
        self.dropout = Dropout(0.0) if dropout is None else dropout

    @property
    def sites(self) -> tuple[Site, ...]:
        return tuple(cell.tape.attention.site for cell in self.cells)

    def forward(
        self,
        inputs: Float[Tensor, "batch step input"],
        keep: Bool[Tensor, "batch step"] | None = None,
        state: tuple[TapeState, ...] | None = None,
        watch: Watch = PLAIN,
    ) -> LSTMNRead:
        """Read positions where `keep`, going on from a state. No gradient goes back into the state."""
        if keep is None:
            keep = torch.ones(inputs.shape[:2], dtype=torch.bool, device=inputs.device)
        looks: dict[str, Look] = {}
        after: list[TapeState] = []
        x = inputs
        for depth, cell in enumerate(self.cells):
            if depth:
                x = self.dropout(x)
                x = torch.cat([x, inputs], dim=-1) if self.skip else x
            begun = _begun(cell, x) if state is None else state[depth].detached()
            site = cell.tape.attention.site.id
            layer = _at_once if _quick(x, keep, watch, site) else _one_by_one
            x, last, looks[site] = layer(cell, x, keep, begun, watch)
            after.append(last)
        return LSTMNRead(x, tuple(after), looks)


class LSTMNEncoder(nn.Module):
    """The LSTMN as an encoder: from the first word to the last, each reading those before it."""

    def __init__(self, config: EncoderConfig, input: int, share: float) -> None:
        super().__init__()
        self.stack = LSTMN(input, config.hidden, config.layers, dropout=Dropout(share), site="enc.tape")
        self.dropout = Dropout(share)

    @property
    def sites(self) -> tuple[Site, ...]:
        return self.stack.sites

    def forward(
        self, words: Float[Tensor, "batch key input"], keep: Bool[Tensor, "batch key"], watch: Watch = PLAIN
    ) -> Read:
        read = self.stack(words, keep, watch=watch)
        states = self.dropout(read.hidden)
        tapes = {site.id: state.tape for site, state in zip(self.sites, read.state, strict=True)}
        return Read(states, states, keep, looks=read.looks, tapes=tapes)


def _begun(cell: LSTMNCell, x: Float[Tensor, "batch step input"]) -> TapeState:
    return cell.start(x.new_zeros(len(x), x.shape[-1]))


def _quick(x: Tensor, keep: Tensor, watch: Watch, site: str) -> bool:
    """May all steps be computed at once? Not where scores are watched or edited, nor with padding inside."""
    plain = watch.edit is None and watch.detail_at(site) is not Detail.FULL
    wide = x.dtype in (torch.float32, torch.float64) and not torch.is_autocast_enabled(x.device.type)
    return plain and wide and bool((keep[:, 1:] <= keep[:, :-1]).all())


Layered = tuple[Float[Tensor, "batch step hidden"], TapeState, Look]


def _one_by_one(cell: LSTMNCell, x: Tensor, keep: Tensor, begun: TapeState, watch: Watch) -> Layered:
    """One layer, a step after the other."""
    state, slots = begun, begun.tape.keep.shape[1] + x.shape[1]
    states: list[Tensor] = []
    looks: list[Look] = []
    for t in range(x.shape[1]):
        state, look = cell(x[:, t], state, keep[:, t], watch)
        states.append(state.hidden.masked_fill(~keep[:, t, None], 0.0))
        looks.append(_widened(look, slots, keep[:, t]))
    if not states:
        return x.new_zeros(len(x), 0, cell.tape.hidden), begun, Look(None)
    return torch.stack(states, dim=1), state.detached(), side_by_side(looks)


def _widened(look: Look, slots: int, real: Bool[Tensor, "batch"]) -> Look:
    """With room for slots that are not written yet; what padding read is nothing."""

    def kept(t: Tensor) -> Tensor:
        return t.masked_fill(~real[:, None, None, None], 0.0)

    def wide(t: Tensor | None) -> Tensor | None:
        return None if t is None else kept(nn.functional.pad(t, (0, slots - t.shape[-1])))

    context = None if look.context is None else kept(look.context)
    return Look(wide(look.weights), wide(look.scores), look.extra, look.query, context)


def _at_once(cell: LSTMNCell, x: Tensor, keep: Tensor, begun: TapeState, watch: Watch) -> Layered:
    """One layer, all steps as one operation."""
    tape, hidden, width = cell.tape, cell.tape.hidden, x.shape[-1]
    score = tape.attention.score
    assert isinstance(score, Additive)
    # torch's order of gates is the kernels': in, forget, new, out
    gates = cell.gates.weight.view(4, hidden, -1)[[0, 1, 3, 2]].flatten(end_dim=1)
    bias = cell.gates.bias.view(4, hidden)[[0, 1, 3, 2]].flatten()
    ask = score.query.weight
    recall = ask[:, width : width + hidden]
    past = torch.cat([gates[:, :hidden], recall]) if tape.recall else gates[:, :hidden]
    query = x @ ask[:, :width].T
    count = begun.tape.keep.shape[1] - tape.slots
    steps = range(count, count + x.shape[1])
    place = x.new_zeros(len(steps), len(score.v))
    if tape.recency:
        query = query + x.new_tensor([asked_from(step) for step in steps])[:, None] * ask[:, -1]
        place = x.new_tensor([stands_at(step) for step in steps])[:, None] * score.key.weight[:, -1]
    if tape.recall and count:  # in the first one, too
        first = query[:, :1] + (begun.summary @ recall.T)[:, None]
        query = torch.cat([first, query[:, 1:]], dim=1)
    taped = tape_steps(
        Begun(begun.tape.keys[:, :, 0], begun.tape.values[:, :, 0], begun.tape.keep),
        keep,
        query,
        nn.functional.linear(x, gates[:, hidden:], bias),
        Weights(past.contiguous(), score.key.weight[:, :hidden], score.v, place),
    )
    real = keep[:, :, None]
    weights = None
    if watch.detail_at(tape.attention.site.id) is Detail.WEIGHTS:
        weights = taped.weights.masked_fill(~real, 0.0)[:, :, None]
    return taped.hidden.masked_fill(~real, 0.0), _after(taped, keep, begun), Look(weights)


def _after(taped: Taped, keep: Tensor, begun: TapeState) -> TapeState:
    """The state after each sentence's last word."""
    hidden = begun.hidden.shape[-1]
    memory = Memory(
        taped.keys[:, :, None], taped.values[:, :, None], torch.cat([begun.tape.keep, keep], dim=1)
    )
    written = taped.values[:, begun.tape.keep.shape[1] :]
    last: Int[Tensor, "batch"] = keep.sum(dim=1)
    parts = (taped.read[:, :, :hidden], written[:, :, :hidden], written[:, :, hidden:])
    before = (begun.summary, begun.hidden, begun.cell)
    return TapeState(memory, *(_at(last, steps, start) for steps, start in zip(parts, before, strict=True)))


def _at(last: Tensor, steps: Tensor, start: Tensor) -> Tensor:
    """What step number `last` gave, counted from 1; at 0 what was there before."""
    every = torch.cat([start[:, None], steps], dim=1)
    return every[torch.arange(len(last), device=last.device), last].detach()

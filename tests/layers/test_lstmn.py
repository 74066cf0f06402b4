"""The LSTMN's cell against the oracle's plain loops, step by step and sentence by sentence."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from attention import reference
from attention.helpers import FULL, close, enliven, rng
from heedful.attention import Look, Override, Watch
from heedful.layers.lstmn import LSTMNCell, TapeState

BATCH, STEPS, INPUT, HIDDEN = 5, 7, 3, 2
LENGTHS = (7, 4, 1, 0, 5)


def make(recall: bool = True, zero_slot: bool = False) -> LSTMNCell:
    return enliven(LSTMNCell(INPUT, HIDDEN, recall=recall, zero_slot=zero_slot), spread=1.0).double()


def inputs() -> Tensor:
    return torch.randn(BATCH, STEPS, INPUT, generator=rng(1), dtype=torch.float64)


def run(
    cell: LSTMNCell, x: Tensor, keep: Tensor | None = None, watch: Watch = FULL
) -> list[tuple[TapeState, Look]]:
    state, steps = cell.start(x[:, 0]), []
    for t in range(x.shape[1]):
        state, look = cell(x[:, t], state, None if keep is None else keep[:, t], watch)
        steps.append((state, look))
    return steps


def oracle(cell: LSTMNCell, x: Tensor, zero_slot: bool) -> list[reference.LstmnStep]:
    """One sentence by the equations."""
    p: dict[str, Any] = {name: parameter.tolist() for name, parameter in cell.named_parameters()}
    both = p["tape.attention.score.query.weight"]
    W_x = [row[:INPUT] for row in both]
    W_s = [row[INPUT:] for row in both] if cell.tape.recall else None
    W_h, v = p["tape.attention.score.key.weight"], p["tape.attention.score.v"]
    return reference.lstmn(x.tolist(), W_h, W_x, W_s, v, p["gates.weight"], p["gates.bias"], zero_slot)


def agrees(state: TapeState, look: Look, b: int, wanted: reference.LstmnStep, slots: list[int]) -> None:
    """`slots` are the columns of the tape that this sentence wrote itself."""
    assert look.weights is not None
    close(state.hidden[b], wanted.h)
    close(state.cell[b], wanted.m)
    close(state.summary[b], wanted.summary)
    close(look.weights[b, 0, 0][slots], wanted.weights)
    close(look.weights[b].sum(), sum(wanted.weights) + wanted.slot_weight)


@pytest.mark.parametrize("recall", [True, False], ids=["recall", "no recall"])
@pytest.mark.parametrize("zero_slot", [True, False], ids=["zero slot", "no zero slot"])
@pytest.mark.parametrize("side", ["right", "left"])
def test_every_step_of_every_sentence_is_cheng_2016(side: str, zero_slot: bool, recall: bool) -> None:
    """Padding before or after the words is not there: it is neither written nor read."""
    cell, x = make(recall, zero_slot), inputs()
    keep = torch.arange(STEPS) < torch.tensor(LENGTHS)[:, None]
    keep = keep.flip(1) if side == "left" else keep
    steps = run(cell, x, keep)
    for b in range(BATCH):
        places = keep[b].nonzero().flatten().tolist()
        for n, (t, wanted) in enumerate(zip(places, oracle(cell, x[b][keep[b]], zero_slot), strict=True)):
            state, look = steps[t]
            assert look.weights is not None
            assert look.weights.shape == (BATCH, 1, 1, t + zero_slot)
            agrees(state, look, b, wanted, [place + zero_slot for place in places[:n]])
            assert (look.weights[b].sum() > 0) == (n > 0 or zero_slot)


def test_over_padding_the_state_stands_still() -> None:
    """So that the last state of a batch is the state after each sentence's last word."""
    cell, x = make(), inputs()
    keep = torch.arange(STEPS) < torch.tensor(LENGTHS)[:, None]
    steps = run(cell, x, keep)
    start, last = cell.start(x[:, 0]), steps[-1][0]
    for b, length in enumerate(LENGTHS):
        real = steps[length - 1][0] if length else start
        for part in ("summary", "hidden", "cell"):
            close(getattr(last, part)[b], getattr(real, part)[b], 0.0)


def test_without_a_mask_every_step_is_written() -> None:
    cell, x = make(), inputs()
    everything = torch.ones(BATCH, STEPS, dtype=torch.bool)
    for (mine, _), (theirs, _) in zip(run(cell, x), run(cell, x, everything), strict=True):
        close(mine.hidden, theirs.hidden, 0.0)
        assert torch.equal(mine.tape.keep, theirs.tape.keep)


def test_the_current_step_is_not_on_the_tape_it_reads() -> None:
    """papers 6: the tape holds i < t; the first step reads zeros, each later one one slot more."""
    cell, x = make(), inputs()
    for t, (state, look) in enumerate(run(cell, x)):
        assert look.weights is not None
        assert look.weights.shape[-1] == t
        assert state.tape.keep.shape[1] == t + 1
        if t == 0:
            assert (state.summary == 0).all()
        if t == 1:  # a single slot is read as it stands
            assert (look.weights == 1).all()
            close(state.summary, state.tape.values[:, 0, 0, :HIDDEN], 1e-14)
    close(state.tape.values[:, -1, 0], torch.cat([state.hidden, state.cell], dim=-1), 0.0)


def test_a_step_reads_no_later_word() -> None:
    cell, x = make(), inputs()
    before = [state.hidden for state, _ in run(cell, x)]
    changed = x.clone()
    changed[:, 4:] += 1.0
    after = [state.hidden for state, _ in run(cell, changed)]
    for t in range(4):
        close(after[t], before[t], 0.0)
    assert not torch.allclose(after[4], before[4])


def test_sentences_do_not_see_one_another() -> None:
    cell, x = make(zero_slot=True), inputs()
    keep = torch.arange(STEPS) < torch.tensor(LENGTHS)[:, None]
    together = run(cell, x, keep)
    for b in range(BATCH):
        for (mine, _), (ours, _) in zip(run(cell, x[b : b + 1], keep[b : b + 1]), together, strict=True):
            close(mine.hidden[0], ours.hidden[b], 1e-12)


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize("zero_slot", [True, False])
def test_the_whole_run_has_right_gradients(zero_slot: bool) -> None:
    cell = make(zero_slot=zero_slot)
    x = inputs()[:2, :3].clone().requires_grad_()
    keep = torch.tensor([[True, True, True], [False, False, False]])

    def ran(x: Tensor, *parameters: Tensor) -> tuple[Tensor, ...]:
        return tuple(part for state, _ in run(cell, x, keep, Watch()) for part in (state.hidden, state.cell))

    assert torch.autograd.gradcheck(ran, (x, *cell.parameters()))


def test_an_edit_reaches_the_cell_through_its_site() -> None:
    cell, x = LSTMNCell(INPUT, HIDDEN, site="here").double(), inputs()
    asked: list[str] = []

    def nothing(site: str, look: Look, at: Tensor) -> Override:
        asked.append(site)
        assert look.weights is not None
        return Override(torch.zeros_like(look.weights))

    for state, look in run(cell, x, watch=Watch(edit=nothing)):
        assert look.weights is None
        assert (state.summary == 0).all()
    assert asked == ["here"] * STEPS

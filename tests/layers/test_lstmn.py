"""The LSTMN cell against plain loops, step by step and sentence by sentence."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from attention import reference
from attention.helpers import FULL, close, randomize_parameters, rng
from heedful.attention import AttentionOutput, Hooks, Override
from heedful.layers.lstmn import LSTMNCell, TapeState

BATCH, STEPS, INPUT, HIDDEN = 5, 7, 3, 2
LENGTHS = (7, 4, 1, 0, 5)


def make_cell(recall: bool = True, zero_slot: bool = False) -> LSTMNCell:
    return randomize_parameters(LSTMNCell(INPUT, HIDDEN, recall=recall, zero_slot=zero_slot), spread=1.0).double()


def make_inputs() -> Tensor:
    return torch.randn(BATCH, STEPS, INPUT, generator=rng(1), dtype=torch.float64)


def run_cell(
    cell: LSTMNCell, x: Tensor, keep: Tensor | None = None, hooks: Hooks = FULL
) -> list[tuple[TapeState, AttentionOutput]]:
    state, steps = cell.initial_state(x[:, 0]), []
    for t in range(x.shape[1]):
        state, attention = cell(x[:, t], state, None if keep is None else keep[:, t], hooks)
        steps.append((state, attention))
    return steps


def reference_steps(cell: LSTMNCell, x: Tensor, zero_slot: bool) -> list[reference.LstmnStep]:
    """Run one sentence by the equations."""
    p: dict[str, Any] = {name: parameter.tolist() for name, parameter in cell.named_parameters()}
    both = p["tape.attention.score.query.weight"]
    W_x = [row[:INPUT] for row in both]
    W_s = [row[INPUT:] for row in both] if cell.tape.recall else None
    W_h, v = p["tape.attention.score.key.weight"], p["tape.attention.score.v"]
    return reference.lstmn(x.tolist(), W_h, W_x, W_s, v, p["gates.weight"], p["gates.bias"], zero_slot)


def assert_step(
    state: TapeState, attention: AttentionOutput, b: int, expected: reference.LstmnStep, slots: list[int]
) -> None:
    """Compare one step of sentence b; `slots` are the columns of the tape that the sentence wrote."""
    assert attention.weights is not None
    close(state.hidden[b], expected.h)
    close(state.cell[b], expected.m)
    close(state.summary[b], expected.summary)
    close(attention.weights[b, 0, 0][slots], expected.weights)
    close(attention.weights[b].sum(), sum(expected.weights) + expected.slot_weight)


@pytest.mark.parametrize("recall", [True, False], ids=["recall", "no recall"])
@pytest.mark.parametrize("zero_slot", [True, False], ids=["zero slot", "no zero slot"])
@pytest.mark.parametrize("side", ["right", "left"])
def test_every_step_is_that_of_cheng_2016(side: str, zero_slot: bool, recall: bool) -> None:
    """Padding before or after the words is neither written nor attended to."""
    cell, x = make_cell(recall, zero_slot), make_inputs()
    keep = torch.arange(STEPS) < torch.tensor(LENGTHS)[:, None]
    keep = keep.flip(1) if side == "left" else keep
    steps = run_cell(cell, x, keep)
    for b in range(BATCH):
        positions = keep[b].nonzero().flatten().tolist()
        for n, (t, expected) in enumerate(zip(positions, reference_steps(cell, x[b][keep[b]], zero_slot), strict=True)):
            state, attention = steps[t]
            assert attention.weights is not None
            assert attention.weights.shape == (BATCH, 1, 1, t + zero_slot)
            assert_step(state, attention, b, expected, [place + zero_slot for place in positions[:n]])
            assert (attention.weights[b].sum() > 0) == (n > 0 or zero_slot)


def test_padding_leaves_the_state_unchanged() -> None:
    """So the last state of a batch is the state after the last word of each sentence."""
    cell, x = make_cell(), make_inputs()
    keep = torch.arange(STEPS) < torch.tensor(LENGTHS)[:, None]
    steps = run_cell(cell, x, keep)
    initial, last = cell.initial_state(x[:, 0]), steps[-1][0]
    for b, length in enumerate(LENGTHS):
        after_last_word = steps[length - 1][0] if length else initial
        for part in ("summary", "hidden", "cell"):
            close(getattr(last, part)[b], getattr(after_last_word, part)[b], 0.0)


def test_without_a_mask_every_step_is_on_the_tape() -> None:
    cell, x = make_cell(), make_inputs()
    all_kept = torch.ones(BATCH, STEPS, dtype=torch.bool)
    for (alone, _), (other, _) in zip(run_cell(cell, x), run_cell(cell, x, all_kept), strict=True):
        close(alone.hidden, other.hidden, 0.0)
        assert torch.equal(alone.tape.keep, other.tape.keep)


def test_a_step_attends_to_earlier_steps_alone() -> None:
    """The tape holds i < t: the first step gets zeros, each later step has one more slot."""
    cell, x = make_cell(), make_inputs()
    for t, (state, attention) in enumerate(run_cell(cell, x)):
        assert attention.weights is not None
        assert attention.weights.shape[-1] == t
        assert state.tape.keep.shape[1] == t + 1
        if t == 0:
            assert (state.summary == 0).all()
        if t == 1:  # all weight is on the single slot
            assert (attention.weights == 1).all()
            close(state.summary, state.tape.values[:, 0, 0, :HIDDEN], 1e-14)
    close(state.tape.values[:, -1, 0], torch.cat([state.hidden, state.cell], dim=-1), 0.0)


def test_no_step_depends_on_a_later_word() -> None:
    cell, x = make_cell(), make_inputs()
    before = [state.hidden for state, _ in run_cell(cell, x)]
    changed = x.clone()
    changed[:, 4:] += 1.0
    after = [state.hidden for state, _ in run_cell(cell, changed)]
    for t in range(4):
        close(after[t], before[t], 0.0)
    assert not torch.allclose(after[4], before[4])


def test_sentences_of_a_batch_are_independent() -> None:
    cell, x = make_cell(zero_slot=True), make_inputs()
    keep = torch.arange(STEPS) < torch.tensor(LENGTHS)[:, None]
    together = run_cell(cell, x, keep)
    for b in range(BATCH):
        for (alone, _), (in_batch, _) in zip(run_cell(cell, x[b : b + 1], keep[b : b + 1]), together, strict=True):
            close(alone.hidden[0], in_batch.hidden[b], 1e-12)


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize("zero_slot", [True, False])
def test_gradients_pass_gradcheck(zero_slot: bool) -> None:
    cell = make_cell(zero_slot=zero_slot)
    x = make_inputs()[:2, :3].clone().requires_grad_()
    keep = torch.tensor([[True, True, True], [False, False, False]])

    def states(x: Tensor, *parameters: Tensor) -> tuple[Tensor, ...]:
        return tuple(part for state, _ in run_cell(cell, x, keep, Hooks()) for part in (state.hidden, state.cell))

    assert torch.autograd.gradcheck(states, (x, *cell.parameters()))


def test_an_edit_changes_the_summary() -> None:
    cell, x = LSTMNCell(INPUT, HIDDEN, site="here").double(), make_inputs()
    sites: list[str] = []

    def zero_weights(site: str, attention: AttentionOutput, at: Tensor) -> Override:
        sites.append(site)
        assert attention.weights is not None
        return Override(torch.zeros_like(attention.weights))

    for state, attention in run_cell(cell, x, hooks=Hooks(edit=zero_weights)):
        assert attention.weights is None
        assert (state.summary == 0).all()
    assert sites == ["here"] * STEPS

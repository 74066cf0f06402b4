"""The stacked LSTMN against plain loops, and its two ways of computing against one another."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from attention import reference
from attention.helpers import FULL, SEEN, close, enliven, rng
from heedful import native
from heedful.attention import Look, Override, Watch
from heedful.layers import lstmn
from heedful.layers.dropout import Locked
from heedful.layers.lstmn import LSTMN, LSTMNRead, TapeState

BATCH, STEPS, INPUT, HIDDEN = 4, 6, 3, 5
LENGTHS = (6, 3, 1, 0)
KINDS = [
    pytest.param(recall, zero_slot, skip, id=f"{recall=} {zero_slot=} {skip=}")
    for recall in (True, False)
    for zero_slot in (True, False)
    for skip in (True, False)
]


def make(
    recall: bool = True, zero_slot: bool = False, skip: bool = False, layers: int = 3, recency: bool = False
) -> LSTMN:
    stack = LSTMN(INPUT, HIDDEN, layers, recall=recall, zero_slot=zero_slot, skip=skip, recency=recency)
    return enliven(stack, spread=1.0).double()


def inputs(dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(BATCH, STEPS, INPUT, generator=rng(1), dtype=torch.float64).to(dtype)


def kept() -> Tensor:
    return torch.arange(STEPS) < torch.tensor(LENGTHS)[:, None]


def loops(stack: LSTMN, xs: list[list[float]], zero_slot: bool) -> list[list[reference.LstmnStep]]:
    """Every layer of one sentence by the equations."""
    layers: list[list[reference.LstmnStep]] = []
    given = xs
    for cell in stack.cells:
        p: dict[str, Any] = {name: parameter.tolist() for name, parameter in cell.named_parameters()}
        wide = len(given[0]) if given else 0
        both = p["tape.attention.score.query.weight"]
        W_x, W_s = [row[:wide] for row in both], [row[wide:] for row in both]
        made = reference.lstmn(
            given,
            p["tape.attention.score.key.weight"],
            W_x,
            W_s if cell.tape.recall else None,
            p["tape.attention.score.v"],
            p["gates.weight"],
            p["gates.bias"],
            zero_slot,
        )
        layers.append(made)
        given = [step.h + (x if stack.skip else []) for step, x in zip(made, xs, strict=True)]
    return layers


def weights_of(look: Look) -> Tensor:
    assert look.weights is not None
    return look.weights


@pytest.mark.parametrize(("recall", "zero_slot", "skip"), KINDS)
@pytest.mark.parametrize("watch", [SEEN, FULL], ids=["all at once", "step by step"])
def test_every_layer_is_cheng_2016(watch: Watch, recall: bool, zero_slot: bool, skip: bool) -> None:
    """Hidden states, summaries and weights of three layers, and the tapes that are left."""
    stack, x, keep = make(recall, zero_slot, skip), inputs(), kept()
    read: LSTMNRead = stack(x, keep, watch=watch)
    for b, length in enumerate(LENGTHS):
        layers = loops(stack, x[b, :length].tolist(), zero_slot)
        for depth, steps in enumerate(layers):
            look, state = weights_of(read.looks[f"tape.{depth}"])[b, :, 0], read.state[depth]
            for t, wanted in enumerate(steps):
                row = [wanted.slot_weight] * zero_slot + wanted.weights
                close(look[t], row + [0.0] * (look.shape[-1] - len(row)), 1e-10)
                slot = state.tape.values[b, zero_slot + t, 0]
                close(slot, wanted.h + wanted.m, 1e-10)
            assert not look[length:].any()
            last = steps[-1] if steps else None
            close(state.hidden[b], last.h if last else [0.0] * HIDDEN, 1e-10)
            close(state.cell[b], last.m if last else [0.0] * HIDDEN, 1e-10)
            close(state.summary[b], last.summary if last else [0.0] * HIDDEN, 1e-10)
        for t, wanted in enumerate(layers[-1]):
            close(read.hidden[b, t], wanted.h, 1e-10)
        assert not read.hidden[b, length:].any()


def gone(stack: LSTMN, x: Tensor, keep: Tensor, state: tuple[TapeState, ...] | None) -> list[Tensor]:
    """What a run gives, and the gradients of all that it was made from."""
    stack.zero_grad()
    x = x.clone().requires_grad_()
    read = stack(x, keep, state, SEEN)
    slopes = torch.randn(read.hidden.shape, generator=rng(3), dtype=torch.float64).to(x.dtype)
    (read.hidden * slopes).sum().backward()
    assert x.grad is not None
    last = [part for after in read.state for part in (after.summary, after.hidden, after.cell)]
    tapes = [part for after in read.state for part in (after.tape.keys, after.tape.values)]
    looks = [weights_of(look) for look in read.looks.values()]
    grads = [p.grad for p in stack.parameters() if p.grad is not None]
    assert len(grads) == len(list(stack.parameters()))
    return [read.hidden, *looks, *last, *tapes, x.grad, *grads]


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(("recall", "zero_slot", "skip"), KINDS)
@pytest.mark.parametrize("recency", [False, True], ids=["", "recency"])
@pytest.mark.parametrize("begun", [False, True], ids=["from the start", "going on"])
@pytest.mark.parametrize(
    ("dtype", "apart"), [(torch.float64, 1e-10), (torch.float32, 2e-5)], ids=["double", "single"]
)
def test_both_ways_agree_forth_and_back(
    recall: bool,
    zero_slot: bool,
    skip: bool,
    recency: bool,
    begun: bool,
    dtype: torch.dtype,
    apart: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stack, x = make(recall, zero_slot, skip, 2, recency).to(dtype), inputs(dtype)
    keep = kept()
    state = stack(inputs(dtype).flip(1)[:, :2]).state if begun else None
    quick = gone(stack, x, keep, state)
    monkeypatch.setattr(lstmn, "_quick", lambda *_: False)
    for mine, slow in zip(quick, gone(stack, x, keep, state), strict=True):
        real = torch.isfinite(slow)
        assert real.all()
        close(*_of_real(mine, slow, keep), apart)


@pytest.mark.parametrize("watch", [SEEN, FULL], ids=["all at once", "step by step"])
def test_with_recency_it_begins_as_an_lstm(watch: Watch) -> None:
    """`3 tanh(4 (slot - t + 1.5))` is all that is scored; nearly all weight is on the last slot."""
    torch.manual_seed(2)
    stack, steps = LSTMN(INPUT, HIDDEN, recency=True).double(), 20
    score: Any = stack.cells[0].tape.attention.score
    with torch.no_grad():
        score.v[1:] = 0.0
    looks = weights_of(stack(torch.randn(1, steps, INPUT).double(), watch=watch).looks["tape.0"])[0, :, 0]
    for t in range(1, steps):
        wanted = [3 * math.tanh(4 * (slot - t + 1.5)) for slot in range(t)]
        close(looks[t, :t], torch.tensor(wanted).double().softmax(dim=0), 1e-6)
        assert looks[t, t - 1] > 0.93


def _of_real(mine: Tensor, slow: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """Tapes have slots of padding that nobody may read; what lies there is nobody's concern."""
    if mine.ndim != 4 or mine.shape[2] != 1 or mine.shape[-1] not in (HIDDEN, 2 * HIDDEN):
        return mine, slow
    before = mine.shape[1] - STEPS
    open_ = torch.cat([torch.ones(len(mine), before, dtype=torch.bool), keep], dim=1)[:, :, None, None]
    return mine * open_, slow * open_


def test_the_kernels_in_c_are_used_and_agree_with_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    if native.library() is None:
        pytest.skip("the kernels are not built")
    stack, x = make(layers=2).float(), inputs(torch.float32)
    quick = stack(x, kept(), watch=SEEN).hidden
    monkeypatch.setattr(native.kernels, "library", lambda: None)
    close(quick, stack(x, kept(), watch=SEEN).hidden, 1e-5)


@pytest.mark.parametrize("zero_slot", [True, False])
@pytest.mark.parametrize("watch", [SEEN, FULL], ids=["all at once", "step by step"])
def test_a_text_in_two_parts_is_the_text(watch: Watch, zero_slot: bool) -> None:
    """The tape and the summary go on."""
    stack, x = make(zero_slot=zero_slot), inputs()
    whole = stack(x, watch=watch)
    first = stack(x[:, :2], watch=watch)
    second = stack(x[:, 2:], state=first.state, watch=watch)
    close(torch.cat([first.hidden, second.hidden], dim=1), whole.hidden, 1e-12)
    for site, look in second.looks.items():
        close(weights_of(look), weights_of(whole.looks[site])[:, 2:], 1e-12)
    for mine, theirs in zip(second.state, whole.state, strict=True):
        close(mine.tape.values, theirs.tape.values, 1e-12)


def test_a_shortened_tape_keeps_its_last_slots_and_the_zero_slot() -> None:
    stack = make(zero_slot=True, layers=1)
    (state,) = stack(inputs()).state
    short = state.shortened(2, slots=1)
    assert short.tape.keep.shape[1] == 3
    close(short.tape.values[:, 1:], state.tape.values[:, -2:], 0.0)
    assert not short.tape.values[:, 0].any()
    assert state.shortened(STEPS, slots=1) is state


def test_padding_before_words_is_not_there_either() -> None:
    stack, x, keep = make(zero_slot=True), inputs(), kept()
    right, left = stack(x, keep), stack(x.flip(1), keep.flip(1))
    for b, length in enumerate(LENGTHS):
        alone = stack(x[b : b + 1, :length].flip(1))
        close(left.hidden[b, STEPS - length :], alone.hidden[0], 1e-12)
        close(right.hidden[b, :length], stack(x[b : b + 1, :length]).hidden[0], 1e-12)


def test_an_edit_knows_the_position_it_changes() -> None:
    stack, x = make(layers=2), inputs()
    asked: list[tuple[str, int]] = []

    def change(site: str, look: Look, at: Tensor) -> Override | None:
        asked.append((site, int(at[0, 0])))
        assert look.weights is not None
        first = torch.zeros_like(look.weights)
        first[..., :1] = 1.0
        return Override(first) if site == "tape.1" else None

    read = stack(x, watch=Watch(FULL.detail, edit=change))
    assert asked == [(f"tape.{depth}", t) for depth in range(2) for t in range(STEPS)]
    assert (weights_of(read.looks["tape.1"])[:, 1:, 0, 0] == 1).all()


def test_locked_dropout_chooses_once_for_all_steps() -> None:
    torch.manual_seed(1)
    locked, x = Locked(0.5).train(), torch.ones(3, 7, 40)
    dropped = locked(x)
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(dropped[0], dropped[1])
    assert torch.equal(locked.eval()(x), x)

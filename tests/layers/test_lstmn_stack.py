"""The stacked LSTMN against plain loops, and its fused steps against single steps."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from attention import reference
from attention.helpers import FULL, WEIGHTS, close, randomize_parameters, rng
from heedful import kernels
from heedful.attention import AttentionOutput, Hooks, Override
from heedful.layers import lstmn
from heedful.layers.lstmn import LSTMN, LSTMNOutput, TapeState

BATCH, STEPS, INPUT, HIDDEN = 4, 6, 3, 5
LENGTHS = (6, 3, 1, 0)
KINDS = [
    pytest.param(recall, zero_slot, skip, id=f"{recall=} {zero_slot=} {skip=}")
    for recall in (True, False)
    for zero_slot in (True, False)
    for skip in (True, False)
]


def make_stack(
    recall: bool = True, zero_slot: bool = False, skip: bool = False, layers: int = 3, recency: bool = False
) -> LSTMN:
    stack = LSTMN(INPUT, HIDDEN, layers, recall=recall, zero_slot=zero_slot, skip=skip, recency=recency)
    return randomize_parameters(stack, spread=1.0).double()


def make_inputs(dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(BATCH, STEPS, INPUT, generator=rng(1), dtype=torch.float64).to(dtype)


def make_keep() -> Tensor:
    return torch.arange(STEPS) < torch.tensor(LENGTHS)[:, None]


def reference_layers(stack: LSTMN, xs: list[list[float]], zero_slot: bool) -> list[list[reference.LstmnStep]]:
    """Run every layer of one sentence by the equations."""
    layers: list[list[reference.LstmnStep]] = []
    layer_inputs = xs
    for cell in stack.cells:
        p: dict[str, Any] = {name: parameter.tolist() for name, parameter in cell.named_parameters()}
        width = len(layer_inputs[0]) if layer_inputs else 0
        query_weight = p["tape.attention.score.query.weight"]
        W_x, W_s = [row[:width] for row in query_weight], [row[width:] for row in query_weight]
        layer_steps = reference.lstmn(
            layer_inputs,
            p["tape.attention.score.key.weight"],
            W_x,
            W_s if cell.tape.recall else None,
            p["tape.attention.score.v"],
            p["gates.weight"],
            p["gates.bias"],
            zero_slot,
        )
        layers.append(layer_steps)
        layer_inputs = [step.h + (x if stack.skip else []) for step, x in zip(layer_steps, xs, strict=True)]
    return layers


def weights_of(attention: AttentionOutput) -> Tensor:
    assert attention.weights is not None
    return attention.weights


@pytest.mark.parametrize(("recall", "zero_slot", "skip"), KINDS)
@pytest.mark.parametrize("hooks", [WEIGHTS, FULL], ids=["fused", "step by step"])
def test_every_layer_is_that_of_cheng_2016(hooks: Hooks, recall: bool, zero_slot: bool, skip: bool) -> None:
    """Compare hidden states, summaries and weights of three layers, and the final tapes."""
    stack, x, keep = make_stack(recall, zero_slot, skip), make_inputs(), make_keep()
    output: LSTMNOutput = stack(x, keep, hooks=hooks)
    for b, length in enumerate(LENGTHS):
        layers = reference_layers(stack, x[b, :length].tolist(), zero_slot)
        for depth, steps in enumerate(layers):
            attention, state = weights_of(output.attentions[f"tape.{depth}"])[b, :, 0], output.state[depth]
            for t, expected in enumerate(steps):
                row = [expected.slot_weight] * zero_slot + expected.weights
                close(attention[t], row + [0.0] * (attention.shape[-1] - len(row)), 1e-10)
                slot = state.tape.values[b, zero_slot + t, 0]
                close(slot, expected.h + expected.m, 1e-10)
            assert not attention[length:].any()
            last = steps[-1] if steps else None
            close(state.hidden[b], last.h if last else [0.0] * HIDDEN, 1e-10)
            close(state.cell[b], last.m if last else [0.0] * HIDDEN, 1e-10)
            close(state.summary[b], last.summary if last else [0.0] * HIDDEN, 1e-10)
        for t, expected in enumerate(layers[-1]):
            close(output.hidden[b, t], expected.h, 1e-10)
        assert not output.hidden[b, length:].any()


def forward_and_backward(stack: LSTMN, x: Tensor, keep: Tensor, state: tuple[TapeState, ...] | None) -> list[Tensor]:
    """Return all outputs, and the gradients of the inputs and of every weight."""
    stack.zero_grad()
    x = x.clone().requires_grad_()
    output = stack(x, keep, state, WEIGHTS)
    loss_weights = torch.randn(output.hidden.shape, generator=rng(3), dtype=torch.float64).to(x.dtype)
    (output.hidden * loss_weights).sum().backward()
    assert x.grad is not None
    last = [part for after in output.state for part in (after.summary, after.hidden, after.cell)]
    tapes = [part for after in output.state for part in (after.tape.keys, after.tape.values)]
    attentions = [weights_of(attention) for attention in output.attentions.values()]
    gradients = [p.grad for p in stack.parameters() if p.grad is not None]
    assert len(gradients) == len(list(stack.parameters()))
    return [output.hidden, *attentions, *last, *tapes, x.grad, *gradients]


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(("recall", "zero_slot", "skip"), KINDS)
@pytest.mark.parametrize("recency", [False, True], ids=["", "recency"])
@pytest.mark.parametrize("continued", [False, True], ids=["from the start", "continued"])
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-10), (torch.float32, 2e-5)], ids=["double", "single"])
def test_fused_and_stepwise_outputs_and_gradients_agree(
    recall: bool,
    zero_slot: bool,
    skip: bool,
    recency: bool,
    continued: bool,
    dtype: torch.dtype,
    atol: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stack, x = make_stack(recall, zero_slot, skip, 2, recency).to(dtype), make_inputs(dtype)
    keep = make_keep()
    state = stack(make_inputs(dtype).flip(1)[:, :2]).state if continued else None
    fused = forward_and_backward(stack, x, keep, state)
    monkeypatch.setattr(lstmn, "tape_steps_support", lambda *_: False)
    for actual, step_by_step in zip(fused, forward_and_backward(stack, x, keep, state), strict=True):
        finite = torch.isfinite(step_by_step)
        assert finite.all()
        close(*_mask_padding(actual, step_by_step, keep), atol)


@pytest.mark.parametrize("hooks", [WEIGHTS, FULL], ids=["fused", "step by step"])
def test_with_recency_the_first_weights_are_on_the_last_slot(hooks: Hooks) -> None:
    """The only score is `3 tanh(4 (slot - t + 1.5))`, so nearly all weight is on the last slot, as in an LSTM."""
    torch.manual_seed(2)
    stack, steps = LSTMN(INPUT, HIDDEN, recency=True).double(), 20
    score: Any = stack.cells[0].tape.attention.score
    with torch.no_grad():
        score.v[1:] = 0.0
    attentions = weights_of(stack(torch.randn(1, steps, INPUT).double(), hooks=hooks).attentions["tape.0"])[0, :, 0]
    for t in range(1, steps):
        expected = [3 * math.tanh(4 * (slot - t + 1.5)) for slot in range(t)]
        close(attentions[t, :t], torch.tensor(expected).double().softmax(dim=0), 1e-6)
        assert attentions[t, t - 1] > 0.93


def _mask_padding(actual: Tensor, step_by_step: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """Zero the slots of padding on tapes: nothing may attend to them, so their contents are arbitrary."""
    if actual.ndim != 4 or actual.shape[2] != 1 or actual.shape[-1] not in (HIDDEN, 2 * HIDDEN):
        return actual, step_by_step
    before = actual.shape[1] - STEPS
    kept = torch.cat([torch.ones(len(actual), before, dtype=torch.bool), keep], dim=1)[:, :, None, None]
    return actual * kept, step_by_step * kept


def test_the_c_kernels_agree_with_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    if kernels.library() is None:
        pytest.skip("the kernels are not built")
    stack, x = make_stack(layers=2).float(), make_inputs(torch.float32)
    fused = stack(x, make_keep(), hooks=WEIGHTS).hidden
    monkeypatch.setattr("heedful.kernels.loader._load", lambda: None)
    close(fused, stack(x, make_keep(), hooks=WEIGHTS).hidden, 1e-5)


@pytest.mark.parametrize("zero_slot", [True, False])
@pytest.mark.parametrize("hooks", [WEIGHTS, FULL], ids=["fused", "step by step"])
def test_a_text_can_be_continued_from_its_state(hooks: Hooks, zero_slot: bool) -> None:
    """The tape and the summary continue."""
    stack, x = make_stack(zero_slot=zero_slot), make_inputs()
    full = stack(x, hooks=hooks)
    first = stack(x[:, :2], hooks=hooks)
    second = stack(x[:, 2:], state=first.state, hooks=hooks)
    close(torch.cat([first.hidden, second.hidden], dim=1), full.hidden, 1e-12)
    for site, attention in second.attentions.items():
        close(weights_of(attention), weights_of(full.attentions[site])[:, 2:], 1e-12)
    for actual, other in zip(second.state, full.state, strict=True):
        close(actual.tape.values, other.tape.values, 1e-12)


def test_a_truncated_tape_keeps_its_last_slots_and_the_zero_slot() -> None:
    stack = make_stack(zero_slot=True, layers=1)
    (state,) = stack(make_inputs()).state
    truncated = state.truncate(2, fixed_slots=1)
    assert truncated.tape.keep.shape[1] == 3
    close(truncated.tape.values[:, 1:], state.tape.values[:, -2:], 0.0)
    assert not truncated.tape.values[:, 0].any()
    assert state.truncate(STEPS, fixed_slots=1) is state


def test_padding_before_the_words_is_ignored() -> None:
    stack, x, keep = make_stack(zero_slot=True), make_inputs(), make_keep()
    right, left = stack(x, keep), stack(x.flip(1), keep.flip(1))
    for b, length in enumerate(LENGTHS):
        alone = stack(x[b : b + 1, :length].flip(1))
        close(left.hidden[b, STEPS - length :], alone.hidden[0], 1e-12)
        close(right.hidden[b, :length], stack(x[b : b + 1, :length]).hidden[0], 1e-12)


def test_an_edit_gets_the_position_of_each_step() -> None:
    stack, x = make_stack(layers=2), make_inputs()
    calls: list[tuple[str, int]] = []

    def attend_to_first_slot(site: str, attention: AttentionOutput, positions: Tensor) -> Override | None:
        calls.append((site, int(positions[0, 0])))
        assert attention.weights is not None
        first = torch.zeros_like(attention.weights)
        first[..., :1] = 1.0
        return Override(first) if site == "tape.1" else None

    output = stack(x, hooks=Hooks(FULL.detail, edit=attend_to_first_slot))
    assert calls == [(f"tape.{depth}", t) for depth in range(2) for t in range(STEPS)]
    assert (weights_of(output.attentions["tape.1"])[:, 1:, 0, 0] == 1).all()

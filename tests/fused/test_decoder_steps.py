"""All steps of a recurrent decoder as one operation: the same outputs and gradients as step by step."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

import small_models
from heedful import kernels
from heedful.attention import NO_HOOKS, Detail, Hooks
from heedful.fused.cells import CellWeights
from heedful.fused.decoder_steps import DecoderSpec, DecoderWeights, FusedOutput, fused_steps
from heedful.layers import recurrent_decoder
from heedful.layers.dropout import Dropout
from heedful.models import Seq2Seq

MODES: dict[str, dict[str, Any]] = {
    "attend-first": {"step_order": "attend-update-generate", "read_out": "deep"},
    "attend-first, gated": {"step_order": "attend-update-generate", "read_out": "added", "gate": True},
    "feed-context": {"step_order": "update-attend-generate", "input_feeding": "context"},
    "feed-context, initialized by attention": {
        "step_order": "update-attend-generate",
        "input_feeding": "context",
        "input_feeding_init": "attend",
    },
    "feed-attentional": {"step_order": "update-attend-generate", "input_feeding": "attentional", "read_out": "tanh"},
    "conditional": {"step_order": "conditional", "read_out": "deep"},
}
LSTM = {"encoder__kind": "lstm", "decoder__kind": "lstm", "decoder__state_init": "bridge"}
DEEP = {"encoder__layers": 2, "decoder__layers": 2, "decoder__state_init": "bridge"}
STACKS: dict[str, dict[str, Any]] = {
    "gru": {},
    "gru, two layers": DEEP,
    "lstm": LSTM,
    "lstm, two layers": LSTM | DEEP,
    "lstm, general": LSTM | {"attention__score": "general"},
    "gru, dot, two layers": DEEP | {"attention__score": "dot"},
    "lstm, scaled dot, without the end token": LSTM | {"attention__score": "scaled-dot", "attention__read_end": False},
}


STEP_BY_STEP = "heedful.layers.recurrent_decoder.RecurrentDecoder._fused_spec", lambda *_: None


def build_model(mode: str, stack: str = "gru") -> Seq2Seq:
    changes = {f"decoder__{key}": value for key, value in MODES[mode].items()}
    return small_models.build_model(small_models.small_preset("bigru-gru", **changes, **STACKS[stack])).float()


class Outcome(NamedTuple):
    """The results of a forward and a backward pass."""

    logits: Tensor
    final_state: Tensor
    gradients: dict[str, Tensor]


def run(model: Seq2Seq, hooks: Hooks = NO_HOOKS) -> Outcome:
    """Run teacher forcing and a loss that depends on logits, final state and, if recorded, attention weights."""
    model.zero_grad()
    output = model(small_models.small_batch(), hooks)
    torch.manual_seed(1)
    loss = (output.logits * torch.randn(output.logits.shape)).sum()
    if hooks.detail is not Detail.NONE:
        weights = output.attentions["cross"].weights
        assert weights is not None
        loss = loss + (weights * torch.randn(weights.shape)).sum()
    state = output.state
    final = torch.cat([*state.hidden, *([] if state.input_feed is None else [state.input_feed])], dim=-1)
    (loss + (final * torch.randn(final.shape)).sum()).backward()  # type: ignore[no-untyped-call]
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return Outcome(output.logits, final, gradients)


PAIRS = [(mode, stack) for mode in MODES for stack in STACKS if mode != "conditional" or stack == "gru"]


@pytest.mark.parametrize(("mode", "stack"), PAIRS)
@pytest.mark.parametrize("in_c", [True, False], ids=["in C", "in torch"])
@pytest.mark.parametrize("detail", [Detail.NONE, Detail.WEIGHTS])
def test_outputs_and_gradients_equal_those_step_by_step(
    mode: str, stack: str, in_c: bool, detail: Detail, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, hooks = build_model(mode, stack), Hooks(detail)
    monkeypatch.setattr(*STEP_BY_STEP)
    expected = run(model, hooks)
    monkeypatch.undo()
    modes: list[str] = []

    def recording_fused_steps(spec: DecoderSpec, *rest: Any) -> FusedOutput:
        modes.append(spec.mode)
        return fused_steps(spec, *rest)

    monkeypatch.setattr(recurrent_decoder, "fused_steps", recording_fused_steps)
    if not in_c:
        monkeypatch.setattr("heedful.kernels.loader._load", lambda: None)
        monkeypatch.setattr(kernels, "supports", lambda *_, gradients=True: gradients)
    fused = run(model, hooks)
    assert modes == [mode.split(",")[0]]
    torch.testing.assert_close(fused.logits, expected.logits, rtol=0, atol=2e-5)
    torch.testing.assert_close(fused.final_state, expected.final_state, rtol=0, atol=2e-5)
    assert fused.gradients.keys() == expected.gradients.keys()
    for name, gradient in expected.gradients.items():
        torch.testing.assert_close(fused.gradients[name], gradient, rtol=1e-4, atol=2e-5, msg=name)


def test_hooks_that_record_scores_run_step_by_step() -> None:
    model = build_model("conditional")
    fused = model(small_models.small_batch())
    recorded = model(small_models.small_batch(), Hooks(Detail.FULL))
    assert fused.attentions["cross"].weights is None
    assert recorded.attentions["cross"].scores is not None
    torch.testing.assert_close(recorded.logits, fused.logits, rtol=0, atol=2e-5)


def test_hooks_that_edit_weights_run_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> FusedOutput:
        raise AssertionError("the fused operation cannot edit weights")

    monkeypatch.setattr(recurrent_decoder, "fused_steps", fail)
    build_model("feed-context")(small_models.small_batch(), Hooks(edit=lambda *_: None))


def test_backward_may_run_only_once() -> None:
    loss = build_model("feed-context")(small_models.small_batch()).logits.sum()
    loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]
    with pytest.raises(RuntimeError, match="may run only once"):
        loss.backward()  # type: ignore[no-untyped-call]


def test_weights_survive_flattening() -> None:
    layer = CellWeights(torch.ones(1, 1), torch.ones(1))
    weights = DecoderWeights((layer, layer), query=torch.ones(2, 1), second_gru=layer)
    assert DecoderWeights.unflatten(weights.flatten()) == weights


def test_dropout_between_layers_has_the_same_distribution_as_step_by_step() -> None:
    torch.manual_seed(3)
    changes = {f"decoder__{key}": value for key, value in MODES["feed-attentional"].items()} | DEEP
    config = small_models.small_preset("bigru-gru", **changes)
    model = small_models.build_model(config.model_copy(update={"dropout": 0.5})).float()
    first, second = (model.eval()(small_models.small_batch()).logits for _ in range(2))
    assert torch.equal(first, second)
    model.train()
    assert isinstance(model.decoder, recurrent_decoder.RecurrentDecoder)
    for module in model.modules():
        if isinstance(module, Dropout) and module is not model.decoder.rnn.dropout:
            module.p = 0.0
    fused = draw_logits(model, 100)
    assert not torch.equal(fused[0], fused[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*STEP_BY_STEP)
        expected = draw_logits(model, 100)
    torch.testing.assert_close(fused.mean(0), expected.mean(0), rtol=0, atol=0.3)
    torch.testing.assert_close(fused.std(0), expected.std(0), rtol=0.5, atol=0.1)


def draw_logits(model: Seq2Seq, times: int) -> Tensor:
    return torch.stack([model(small_models.small_batch()).logits for _ in range(times)])

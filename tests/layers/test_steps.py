"""Many steps as one operation: the same outputs and the same gradients as one step after another."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import small
from heedful import native
from heedful.attention import PLAIN, Detail, Watch
from heedful.layers import recurrent_decoder
from heedful.layers.dropout import Dropout
from heedful.layers.steps import Plan, Written, many_steps
from heedful.models import Seq2Seq

MODES: dict[str, dict[str, Any]] = {
    "look first": {"order": "look-update-generate", "read_out": "deep"},
    "look first, gated": {"order": "look-update-generate", "read_out": "added", "gate": True},
    "feed context": {"order": "update-look-generate", "feed": "context"},
    "feed context, looked for": {"order": "update-look-generate", "feed": "context", "feed_start": "look"},
    "feed vector": {"order": "update-look-generate", "feed": "attentional", "read_out": "tanh"},
    "conditional": {"order": "conditional", "read_out": "deep"},
}


LSTM = {"encoder__kind": "lstm", "decoder__kind": "lstm", "decoder__start": "bridge"}
DEEP = {"encoder__layers": 2, "decoder__layers": 2, "decoder__start": "bridge"}
STACKS: dict[str, dict[str, Any]] = {
    "gru": {},
    "gru, two layers": DEEP,
    "lstm": LSTM,
    "lstm, two layers": LSTM | DEEP,
    "lstm, general": LSTM | {"attention__score": "general"},
    "gru, dot, two layers": DEEP | {"attention__score": "dot"},
    "lstm, scaled, the end unread": LSTM | {"attention__score": "scaled-dot", "attention__read_end": False},
}


def model_of(mode: str, stack: str = "gru") -> Seq2Seq:
    changes = {f"decoder__{key}": value for key, value in MODES[mode].items()}
    return small.built(small.preset("bigru-gru", **changes, **STACKS[stack])).float()


def scored(model: Seq2Seq, watch: Watch = PLAIN) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Logits, the last state, and the gradient of every weight; watched looks have a part in the loss."""
    model.zero_grad()
    stepped = model.score(small.batch(), watch)
    torch.manual_seed(1)
    loss = (stepped.logits * torch.randn(stepped.logits.shape)).sum()
    if watch.detail is not Detail.NONE:
        weights = stepped.looks["cross"].weights
        assert weights is not None
        loss = loss + (weights * torch.randn(weights.shape)).sum()
    after = torch.cat(
        [*stepped.state.cells, *([] if stepped.state.feed is None else [stepped.state.feed])], -1
    )
    (loss + (after * torch.randn(after.shape)).sum()).backward()  # type: ignore[no-untyped-call]
    return (
        stepped.logits,
        after,
        {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None},
    )


PAIRS = [(mode, stack) for mode in MODES for stack in STACKS if mode != "conditional" or stack == "gru"]


@pytest.mark.parametrize(("mode", "stack"), PAIRS)
@pytest.mark.parametrize("kernels", [True, False], ids=["in C", "in torch"])
@pytest.mark.parametrize("detail", [Detail.NONE, Detail.WEIGHTS])
def test_all_steps_at_once_are_the_steps(
    mode: str, stack: str, kernels: bool, detail: Detail, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, watch = model_of(mode, stack), Watch(detail)
    monkeypatch.setattr(recurrent_decoder.RecurrentDecoder, "_quick_plan", lambda *_: None)
    slow = scored(model, watch)
    monkeypatch.undo()
    calls: list[str] = []

    def noted(plan: Plan, *rest: Any) -> Written:
        calls.append(plan.mode)
        return many_steps(plan, *rest)

    monkeypatch.setattr(recurrent_decoder, "many_steps", noted)
    if not kernels:
        monkeypatch.setattr("heedful.native.kernels.library", lambda: None)
        monkeypatch.setattr(native, "fits", lambda *_: True)
    quick = scored(model, watch)
    assert calls == [mode.split(",")[0]]
    torch.testing.assert_close(quick[0], slow[0], rtol=0, atol=2e-5)
    torch.testing.assert_close(quick[1], slow[1], rtol=0, atol=2e-5)
    assert quick[2].keys() == slow[2].keys()
    for name, slope in slow[2].items():
        torch.testing.assert_close(quick[2][name], slope, rtol=1e-4, atol=2e-5, msg=name)


def test_a_watched_look_is_taken_step_by_step() -> None:
    model = model_of("conditional")
    plain = model.score(small.batch())
    watched = model.score(small.batch(), Watch(Detail.FULL))
    assert plain.looks["cross"].weights is None
    assert watched.looks["cross"].weights is not None
    torch.testing.assert_close(watched.logits, plain.logits, rtol=0, atol=2e-5)


def test_what_enters_upper_layers_is_dropped_in_training_alone() -> None:
    torch.manual_seed(3)
    config = small.preset(
        "bigru-gru", **{f"decoder__{k}": v for k, v in MODES["feed vector"].items()}, **DEEP
    )
    model = small.built(config.model_copy(update={"dropout": 0.5})).float()
    first, again = (model.eval().score(small.batch()).logits for _ in range(2))
    assert torch.equal(first, again)
    model.train()
    assert isinstance(model.decoder, recurrent_decoder.RecurrentDecoder)
    for part in model.modules():  # only between the layers
        if isinstance(part, Dropout) and part is not model.decoder.stack.dropout:
            part.p = 0.0
    drawn = torch.stack([model.score(small.batch()).logits for _ in range(100)])
    assert not torch.equal(drawn[0], drawn[1])
    few = one_by_one_drawn(model, 100)
    torch.testing.assert_close(drawn.mean(0), few.mean(0), rtol=0, atol=0.3)
    torch.testing.assert_close(drawn.std(0), few.std(0), rtol=0.5, atol=0.1)


def one_by_one_drawn(model: Seq2Seq, times: int) -> Tensor:
    """The same by the explicit way, which draws a mask at every step."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recurrent_decoder.RecurrentDecoder, "_quick_plan", lambda *_: None)
        return torch.stack([model.score(small.batch()).logits for _ in range(times)])

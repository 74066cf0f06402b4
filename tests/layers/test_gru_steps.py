"""Many steps as one operation: the same outputs and the same gradients as one step after another."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import small
from heedful import native
from heedful.attention import Detail, Watch
from heedful.layers import recurrent_decoder
from heedful.layers.gru_steps import Mode, Written, gru_steps
from heedful.models import Seq2Seq

MODES: dict[str, dict[str, Any]] = {
    "look first": {"order": "look-update-generate", "read_out": "deep"},
    "feed context": {"order": "update-look-generate", "feed": "context"},
    "feed context, looked for": {"order": "update-look-generate", "feed": "context", "feed_start": "look"},
    "feed vector": {"order": "update-look-generate", "feed": "attentional", "read_out": "tanh"},
    "conditional": {"order": "conditional", "read_out": "deep"},
}


def model_of(mode: str) -> Seq2Seq:
    changes = {f"decoder__{key}": value for key, value in MODES[mode].items()}
    return small.built(small.preset("bigru-gru", **changes)).float()


def scored(model: Seq2Seq) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Logits, the last state, and the gradient of every weight."""
    model.zero_grad()
    stepped = model.score(small.batch())
    torch.manual_seed(1)
    loss = (stepped.logits * torch.randn(stepped.logits.shape)).sum()
    after = torch.cat(
        [*stepped.state.cells, *([] if stepped.state.feed is None else [stepped.state.feed])], -1
    )
    (loss + (after * torch.randn(after.shape)).sum()).backward()  # type: ignore[no-untyped-call]
    return (
        stepped.logits,
        after,
        {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None},
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kernels", [True, False], ids=["in C", "in torch"])
def test_all_steps_at_once_are_the_steps(mode: str, kernels: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(mode)
    monkeypatch.setattr(recurrent_decoder.RecurrentDecoder, "_quick_mode", lambda *_: None)
    slow = scored(model)
    monkeypatch.undo()
    calls: list[str] = []

    def noted(mode: Mode, *rest: Any) -> Written:
        calls.append(mode)
        return gru_steps(mode, *rest)

    monkeypatch.setattr(recurrent_decoder, "gru_steps", noted)
    if not kernels:
        monkeypatch.setattr("heedful.native.kernels.library", lambda: None)
        monkeypatch.setattr(native, "fits", lambda *_: True)
    quick = scored(model)
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

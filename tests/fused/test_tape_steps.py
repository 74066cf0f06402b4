"""When the steps of an LSTMN may run as one operation; `tests/layers/test_lstmn_stack.py` compares the results."""

from __future__ import annotations

import pytest
import torch

from heedful.attention import Detail, Hooks
from heedful.fused.tape_steps import supports
from heedful.layers.lstmn import LSTMN

SITE = "tape.0"
X = torch.zeros(2, 3, 5)
KEEP = torch.tensor([[True, True, True], [True, False, False]])


def test_it_runs_for_hooks_that_record_weights_at_most() -> None:
    assert supports(X, KEEP, Hooks(), SITE)
    assert supports(X, KEEP, Hooks(Detail.WEIGHTS), SITE)
    assert not supports(X, KEEP, Hooks(Detail.FULL), SITE)
    assert supports(X, KEEP, Hooks(Detail.FULL, frozenset({"elsewhere"})), SITE)
    assert not supports(X, KEEP, Hooks(edit=lambda *_: None), SITE)


def test_padding_must_come_last() -> None:
    assert not supports(X, KEEP.flip(1), Hooks(), SITE)


def test_it_needs_full_precision() -> None:
    assert supports(X.double(), KEEP, Hooks(), SITE)
    assert not supports(X.bfloat16(), KEEP, Hooks(), SITE)
    with torch.autocast("cpu", torch.bfloat16):
        assert not supports(X, KEEP, Hooks(), SITE)


def test_backward_may_run_only_once() -> None:
    loss = LSTMN(5, 4)(torch.randn(2, 3, 5), KEEP).hidden.sum()
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="may run only once"):
        loss.backward()

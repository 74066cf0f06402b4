"""The kernel for looks over histories, in every build, against torch's own way back."""

from __future__ import annotations

import ctypes

import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from heedful.native import loader
from heedful.native.histories import CONCAT, DOT, PROD, Ragged, Weighing, history_logits, history_loss

LEVELS = [level for level in (0, 3, 4) if (loader.HERE / f"kernels-{level}.so").is_file()]


@pytest.fixture(params=LEVELS, autouse=True)
def build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each build of the kernels that this processor can run."""
    assert loader.library() is not None
    if request.param > int(ctypes.CDLL(str(loader.HERE / "kernels-0.so")).heed_level()):
        pytest.skip("this processor cannot run it")
    found = ctypes.CDLL(str(loader.HERE / f"kernels-{request.param}.so"))
    found.heed_history.argtypes = loader.SIGNATURES["heed_history"]
    found.heed_history.restype = ctypes.c_int64
    monkeypatch.setattr("heedful.native.histories.library", lambda: found)
    torch.manual_seed(0)


def ragged(sizes: list[int], rows: int) -> Ragged:
    """Histories of these sizes; each asks about its first item and some others."""
    histories = [torch.randperm(50)[:size] for size in sizes]
    targets = [torch.cat([history[:1], torch.randint(50, (rows,))]) for history in histories]
    bounds, cuts = (
        torch.tensor([0, *(len(part) for part in parts)]).cumsum(0) for parts in (histories, targets)
    )
    return Ragged(torch.cat(histories), bounds, torch.cat(targets), cuts)


def in_torch(given: Ragged, w: Weighing, keys: Tensor, queries: Tensor, bias: Tensor) -> Tensor:
    found = []
    for e in range(len(given.bounds) - 1):
        keys_of = slice(int(given.bounds[e]), int(given.bounds[e + 1]))
        for row in range(int(given.cuts[e]), int(given.cuts[e + 1])):
            p, q = queries[row], keys[keys_of]
            if w.kind == DOT:
                f = w.scale * (q @ p)
            else:
                inside = torch.cat([p.expand_as(q), q], dim=-1) if w.kind == CONCAT else p * q
                f = torch.relu(inside @ w.w.T + w.b) @ w.h
            open_ = given.ids[keys_of] != given.targets[row]
            f, q = f[open_], q[open_]
            read = torch.exp(f - w.beta * f.logsumexp(0)) @ (q @ p) if len(q) else torch.zeros(())
            found.append(bias[row] + read)
    return torch.stack(found)


@pytest.mark.parametrize("kind", [PROD, CONCAT, DOT])
@pytest.mark.parametrize(("width", "hidden"), [(16, 16), (1, 1), (5, 7), (20, 33)])
@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_scores_losses_and_slopes(kind: int, width: int, hidden: int, beta: float) -> None:
    given = ragged([3, 1, 16, 17, 40, 0], 3)
    across, hidden = 2 * width if kind == CONCAT else width, 0 if kind == DOT else hidden
    leaves = [
        torch.randn(*shape).mul_(0.5).requires_grad_()
        for shape in (
            (len(given.ids), width),
            (len(given.targets), width),
            (len(given.targets),),
            (hidden, across),
            (hidden,),
            (hidden,),
        )
    ]
    keys, queries, bias, w, b, h = leaves
    weighing = Weighing(kind, w, b, h, beta, 0.7)
    labels = (torch.rand(len(bias)) < 0.4).float()
    logits = in_torch(given, weighing, keys, queries, bias)
    loss = binary_cross_entropy_with_logits(logits, labels, reduction="sum")
    leaves = leaves[:3] if kind == DOT else leaves
    wanted = torch.autograd.grad(loss, leaves)
    with torch.no_grad():
        found = history_logits(given, weighing, keys, queries, bias)
    torch.testing.assert_close(found, logits.detach(), rtol=2e-5, atol=2e-5)
    mine = history_loss(given, weighing, keys, queries, bias, labels)
    torch.testing.assert_close(mine.detach(), loss.detach(), rtol=1e-5, atol=1e-5)
    for slope, other in zip(torch.autograd.grad(3 * mine, leaves), wanted, strict=True):
        torch.testing.assert_close(slope, 3 * other, rtol=1e-4, atol=5e-5)


def test_scores_far_apart_are_no_trouble() -> None:
    given = ragged([20], 4)
    w = Weighing(PROD, torch.full((1, 4), 30.0), torch.zeros(1), torch.ones(1), 1.0)
    keys, queries, bias = torch.randn(20, 4), torch.randn(5, 4), torch.zeros(5)
    wanted = in_torch(given, w, keys, queries, bias)
    torch.testing.assert_close(history_logits(given, w, keys, queries, bias), wanted, rtol=1e-4, atol=1e-4)

"""Attention over histories: every C build against torch and autograd."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from heedful.kernels.history_attention import (
    CONCAT,
    DOT,
    PROD,
    HistoryEntries,
    HistoryScore,
    history_logits,
    history_loss,
)
from history_reference import torch_logits

pytestmark = pytest.mark.usefixtures("c_build")


def ragged(sizes: list[int], rows: int) -> HistoryEntries:
    """Histories of these sizes, each with its own first item and some others as targets."""
    histories = [torch.randperm(50)[:size] for size in sizes]
    targets = [torch.cat([history[:1], torch.randint(50, (rows,))]) for history in histories]
    offsets = (torch.tensor([0, *(len(part) for part in parts)]).cumsum(0) for parts in (histories, targets))
    item_offsets, target_offsets = offsets
    return HistoryEntries(torch.cat(histories), item_offsets, torch.cat(targets), target_offsets)


@pytest.mark.parametrize("kind", [PROD, CONCAT, DOT])
@pytest.mark.parametrize(("width", "hidden"), [(16, 16), (1, 1), (5, 7), (20, 33)])
@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_logits_loss_and_gradients_equal_torch(kind: int, width: int, hidden: int, beta: float) -> None:
    entries = ragged([3, 1, 16, 17, 40, 0], 3)
    columns, hidden = 2 * width if kind == CONCAT else width, 0 if kind == DOT else hidden
    leaves = [
        torch.randn(*shape).mul_(0.5).requires_grad_()
        for shape in (
            (len(entries.items), width),
            (len(entries.targets), width),
            (len(entries.targets),),
            (hidden, columns),
            (hidden,),
            (hidden,),
        )
    ]
    keys, queries, bias, w, b, h = leaves
    score = HistoryScore(kind, w, b, h, beta, 0.7)
    labels = (torch.rand(len(bias)) < 0.4).float()
    expected_logits = torch_logits(entries, score, keys, queries, bias)
    expected_loss = binary_cross_entropy_with_logits(expected_logits, labels, reduction="sum")
    leaves = leaves[:3] if kind == DOT else leaves
    expected_gradients = torch.autograd.grad(expected_loss, leaves)
    with torch.no_grad():
        logits = history_logits(entries, score, keys, queries, bias)
    torch.testing.assert_close(logits, expected_logits.detach(), rtol=2e-5, atol=2e-5)
    loss = history_loss(entries, score, keys, queries, bias, labels)
    torch.testing.assert_close(loss.detach(), expected_loss.detach(), rtol=1e-5, atol=1e-5)
    for actual, expected in zip(torch.autograd.grad(3 * loss, leaves), expected_gradients, strict=True):
        torch.testing.assert_close(actual, 3 * expected, rtol=1e-4, atol=5e-5)


def test_scores_far_apart_give_finite_logits() -> None:
    entries = ragged([20], 4)
    score = HistoryScore(PROD, torch.full((1, 4), 30.0), torch.zeros(1), torch.ones(1), 1.0)
    keys, queries, bias = torch.randn(20, 4), torch.randn(5, 4), torch.zeros(5)
    expected = torch_logits(entries, score, keys, queries, bias)
    torch.testing.assert_close(history_logits(entries, score, keys, queries, bias), expected, rtol=1e-4, atol=1e-4)


def test_backward_may_run_only_once() -> None:
    entries = ragged([3], 2)
    keys, queries, bias = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4), torch.zeros(3)
    score = HistoryScore(PROD, torch.randn(2, 4), torch.zeros(2), torch.ones(2), 1.0)
    loss = history_loss(entries, score, keys, queries, bias, torch.ones(3))
    loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]
    with pytest.raises(RuntimeError, match="may run only once"):
        loss.backward()  # type: ignore[no-untyped-call]

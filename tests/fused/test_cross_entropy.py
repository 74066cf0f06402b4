"""The output layer and its cross-entropy as one operation, against torch."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.errors import ShapeError
from heedful.fused.cross_entropy import linear_cross_entropy, linear_rdrop_loss, rdrop_loss, supports
from heedful.layers.readout import Output, TwoLevelOutput


def close(actual: Tensor, expected: Tensor, atol: float = 3e-6) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_loss_and_gradients_are_those_of_torch(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.fused.cross_entropy.CHUNK", 100)  # several chunks, the last not full
    output = Output(6, 23).to(dtype)
    features, targets = torch.randn(17, 6, dtype=dtype, requires_grad=True), torch.randint(23, (17,))
    leaves = [features, output.weight, output.bias]
    total, nll = output.cross_entropy(features, targets, 0.2)
    gradients = torch.autograd.grad(3 * total, leaves)
    logits = output(features)
    expected = F.cross_entropy(logits, targets, label_smoothing=0.2, reduction="sum")
    close(total, expected, 1e-4)
    close(nll, F.cross_entropy(logits, targets, reduction="none"), 1e-5)
    for actual, gradient in zip(gradients, torch.autograd.grad(3 * expected, leaves), strict=True):
        close(actual, gradient, 1e-5)


def test_without_gradients_the_loss_is_the_same() -> None:
    output, features, targets = Output(6, 23), torch.randn(17, 6), torch.randint(23, (17,))
    with torch.no_grad():
        total, _ = output.cross_entropy(features, targets)
    close(total, output.cross_entropy(features, targets)[0].detach())


def test_backward_may_run_only_once() -> None:
    output, features = Output(6, 23), torch.randn(17, 6, requires_grad=True)
    total, _ = output.cross_entropy(features, torch.randint(23, (17,)))
    total.backward(retain_graph=True)  # type: ignore[no-untyped-call]
    with pytest.raises(RuntimeError, match="may run only once"):
        total.backward()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_takes_the_plain_formula(dtype: torch.dtype) -> None:
    weight, bias, targets = torch.randn(23, 6, dtype=dtype), torch.randn(23, dtype=dtype), torch.randint(23, (17,))
    first, second = torch.randn(2, 17, 6, dtype=dtype)
    assert not supports(first)
    total, nll = linear_cross_entropy(first, weight, bias, targets, 0.1)
    close(total, F.cross_entropy(F.linear(first, weight, bias), targets, reduction="sum", label_smoothing=0.1), 2.0)
    assert nll.dtype == dtype
    total, _ = linear_rdrop_loss(first, second, weight, bias, targets, 0.1, 2.0)
    logits = F.linear(first, weight, bias), F.linear(second, weight, bias)
    close(total, rdrop_loss(*logits, targets, 0.1, 2.0)[0], 0.0)


def test_autocast_takes_the_plain_formula() -> None:
    features = torch.randn(17, 6)
    assert supports(features)
    with torch.autocast("cpu", torch.bfloat16):
        assert not supports(features)


@pytest.mark.parametrize("targets", [[0, 4, 5, 22, 9], [0, 1, 4, 2, 3], [5, 6, 7, 21, 22]])
def test_a_two_level_softmax_is_one_distribution(targets: list[int]) -> None:
    output = TwoLevelOutput(6, 23, shortlist=5).double()
    with torch.no_grad():
        for parameter in output.parameters():
            parameter.normal_()
    features = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    logp = output(features)
    close(logp.exp().sum(dim=-1), torch.ones(5, dtype=torch.float64), 1e-12)
    shortlist = features @ output.weight[:5].T + output.bias[:5]
    tail = features @ output.tail_weight.T + output.tail_bias
    close(logp[:, :5], torch.cat([shortlist, tail], dim=1).log_softmax(-1)[:, :5], 1e-12)
    expected = -logp.gather(-1, torch.tensor(targets)[:, None]).squeeze(-1)
    total, nll = output.cross_entropy(features, torch.tensor(targets))
    close(nll, expected, 1e-12)
    leaves = [features, *output.parameters()]
    gradients = torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)
    expected_gradients = torch.autograd.grad(expected.sum(), leaves, materialize_grads=True)
    for actual, gradient in zip(gradients, expected_gradients, strict=True):
        close(actual, gradient, 1e-12)


def test_a_two_level_softmax_refuses_label_smoothing() -> None:
    with pytest.raises(ShapeError, match="label smoothing needs a softmax over all words"):
        TwoLevelOutput(6, 23, shortlist=5).cross_entropy(torch.randn(5, 6), torch.arange(5), 0.1)

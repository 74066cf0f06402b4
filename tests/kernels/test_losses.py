"""Cross-entropy, R-Drop and the most likely words: every C build against torch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from heedful import kernels

pytestmark = pytest.mark.usefixtures("c_build")
SIZES = [(1, 1), (3, 17), (40, 1003), (2, 8000)]


def close(actual: Tensor, expected: Tensor, atol: float = 3e-6) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_and_its_gradient_equal_torch(
    size: tuple[int, int], smoothing: float, use_torch: Callable[[], None]
) -> None:
    logits = 5 * torch.randn(size)
    targets = torch.randint(size[1], (size[0],))
    c_gradient, torch_gradient = logits.clone(), logits.clone()
    c_loss, c_nll = kernels.cross_entropy(c_gradient, targets, smoothing)
    use_torch()
    torch_loss, torch_nll = kernels.cross_entropy(torch_gradient, targets, smoothing)
    close(c_loss, torch_loss, 1e-5)
    close(c_nll, torch_nll, 1e-5)
    close(c_gradient, torch_gradient)
    logits.requires_grad_()
    loss = F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    loss.backward()  # type: ignore[no-untyped-call]
    close(c_loss.sum(), loss.detach(), 1e-4)
    assert logits.grad is not None
    close(c_gradient, logits.grad)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("smoothing", "rdrop"), [(0.0, 1.0), (0.1, 5.0)])
def test_rdrop_cross_entropy_and_its_gradients_equal_torch(
    size: tuple[int, int], smoothing: float, rdrop: float, use_torch: Callable[[], None]
) -> None:
    logits = 3 * torch.randn(2, *size)
    targets = torch.randint(size[1], (size[0],))
    c_gradients, torch_gradients = logits.clone(), logits.clone()
    c_loss, c_nll = kernels.rdrop_cross_entropy(c_gradients[0], c_gradients[1], targets, smoothing, rdrop)
    use_torch()
    torch_loss, torch_nll = kernels.rdrop_cross_entropy(
        torch_gradients[0], torch_gradients[1], targets, smoothing, rdrop
    )
    close(c_loss, torch_loss, 1e-4)
    close(c_nll, torch_nll, 1e-5)
    close(c_gradients, torch_gradients, 5e-5)  # of numbers up to 5


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_rdrop_cross_entropy_of_a_row_that_is_not_finite_is_nan(value: float) -> None:
    logits = torch.randn(2, 3, 50)
    logits[1, 1, 20] = value
    loss, _ = kernels.rdrop_cross_entropy(logits[0], logits[1], torch.tensor([1, 2, 3]), 0.1, 5.0)
    assert loss.isnan().tolist() == [False, True, False]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_cross_entropy_of_a_row_that_is_not_finite_is_nan(value: float) -> None:
    logits = torch.randn(3, 50)
    logits[1, 20] = value
    loss, _ = kernels.cross_entropy(logits, torch.tensor([1, 2, 3]), 0.1)
    assert loss.isnan().tolist() == [False, True, False]


def test_cross_entropy_accepts_words_with_a_logit_of_minus_infinity() -> None:
    logits, targets = torch.randn(2, 50), torch.tensor([20, 30])
    logits[:, :10] = float("-inf")
    _, nll = kernels.cross_entropy(logits.clone(), targets, 0.0)
    close(nll, F.cross_entropy(logits, targets, reduction="none"))


@pytest.mark.parametrize(("vocabulary", "k"), [(1, 1), (5, 5), (64, 3), (8000, 1), (8001, 12)])
def test_top_k_gives_the_most_likely_words_and_on_a_tie_the_first(vocabulary: int, k: int) -> None:
    logits = 3 * torch.randn(9, vocabulary)
    logits[0] = 1.0
    logp, words = kernels.top_k(logits, k)
    expected = logits.log_softmax(-1)
    assert words[0].tolist() == list(range(k))
    close(logp, expected.gather(-1, words))
    close(logp, expected.topk(k).values)

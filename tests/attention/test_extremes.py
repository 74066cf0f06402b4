"""Scores near the limits of floating point, and widths that take plain dot products there."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from attention.helpers import DTYPES, NORMALIZERS, attend, build, close, mask, rng
from heedful.attention import Attention, Detail, Dot, Hooks, ScaledDot

SUM_TO_ONE = [name for name in NORMALIZERS if NORMALIZERS[name].mass == "one"]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 1e-2}


def normalize(normalizer: str, scores: list[float], keep: str, dtype: torch.dtype) -> list[float]:
    """Return the weights, asserting their dtype and finite gradients."""
    inputs = torch.tensor([scores], dtype=dtype, requires_grad=True)
    weights: Tensor = NORMALIZERS[normalizer](inputs, mask(keep))
    assert weights.dtype == dtype
    weights[0, 0].backward()  # type: ignore[no-untyped-call]
    assert inputs.grad is not None
    assert inputs.grad.isfinite().all()
    actual: list[float] = weights[0].tolist()
    return actual


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("normalizer", SUM_TO_ONE)
def test_weights_of_scores_of_ten_thousand(normalizer: str, dtype: torch.dtype) -> None:
    far = 1e4
    assert normalize(normalizer, [far, -far, 0.0], "111", dtype) == [1.0, 0.0, 0.0]
    assert normalize(normalizer, [far, far, -far], "111", dtype) == pytest.approx([0.5, 0.5, 0.0])
    assert normalize(normalizer, [far, far, -far, -far], "0111", dtype) == [0.0, 1.0, 0.0, 0.0]
    assert normalize(normalizer, [-far, far, -far], "101", dtype) == pytest.approx([0.5, 0.0, 0.5])


@pytest.mark.parametrize("dtype", DTYPES)
def test_readable_scores_far_below_a_forbidden_one_keep_their_weights(dtype: torch.dtype) -> None:
    share = 1 / (1 + math.exp(-1))
    within = TOLERANCE[dtype]
    actual = normalize("softmax", [-200.0, -201.0, 0.0], "110", dtype)
    assert actual == pytest.approx([share, 1 - share, 0.0], abs=within)
    assert normalize("sparsemax", [-200.0, -201.0, 0.0], "110", dtype) == [1.0, 0.0, 0.0]
    # entmax15 of scores 1 apart: halves 1/2 apart, threshold tau with tau^2 + (tau + 1/2)^2 = 1, tau >= 0
    tau = (-1 + math.sqrt(7)) / 4
    actual = normalize("entmax15", [-200.0, -201.0, 0.0], "110", dtype)
    assert actual == pytest.approx([(tau + 0.5) ** 2, tau**2, 0.0], abs=within)


@pytest.mark.parametrize("dtype", DTYPES)
def test_smoothed_softmax_of_very_negative_scores(dtype: torch.dtype) -> None:
    """At beta 0.5 two equal scores e weigh exp(e/2) / sqrt 2 each: representable where exp(e) is not."""
    low = -16.0
    expected = math.exp(low / 2) / math.sqrt(2)
    actual = normalize("smoothed-softmax", [low, low, 10.0], "110", dtype)
    assert actual[:2] == pytest.approx([expected] * 2, rel=max(TOLERANCE[dtype], 1e-3))
    assert actual[2] == 0.0
    assert normalize("smoothed-softmax", [-1e4, -1e4, 1e4], "110", dtype) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("invalid", [math.nan, math.inf, -math.inf])
def test_a_forbidden_score_has_no_influence(normalizer: str, invalid: float) -> None:
    keep = mask("101", "000")
    scores = torch.tensor([[0.5, invalid, 1.0], [invalid] * 3], dtype=torch.float64)
    clean = torch.tensor([[0.5, 0.0, 1.0], [0.0] * 3], dtype=torch.float64)
    assert torch.equal(NORMALIZERS[normalizer](scores, keep), NORMALIZERS[normalizer](clean, keep))


@pytest.mark.parametrize("hooks", [Hooks(), Hooks(Detail.WEIGHTS)], ids=["fused", "explicit"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_with_scores_of_ten_thousand(dtype: torch.dtype, hooks: Hooks) -> None:
    attention = build("dot", dtype=dtype, query=1, key=1)
    keys = torch.tensor([[[100.0], [-100.0], [90.0], [100.0]]], dtype=dtype)
    values = torch.tensor([[[3.0], [5.0], [7.0], [11.0]]], dtype=dtype)
    memory = attention.prepare(keys, mask("1110"), values)
    query = torch.tensor([[[100.0], [-100.0]]], dtype=dtype, requires_grad=True)
    context, _, _ = attend(attention, query, memory, hooks=hooks)
    assert context[0, :, 0].tolist() == [3.0, 5.0]
    context.sum().backward()  # type: ignore[no-untyped-call]
    assert query.grad is not None
    assert query.grad.isfinite().all()


def variance_and_gradient(kind: type[Dot], width: int) -> tuple[float, float]:
    """Return the variance of the scores, and the gradient of the weights with respect to them."""
    attention = Attention(kind(width, width))
    keys, query = (torch.randn(1, 64, width, generator=rng(seed), dtype=torch.float64) for seed in (1, 2))
    memory = attention.prepare(keys, torch.ones(1, 64, dtype=torch.bool))
    output, _ = attention(query.requires_grad_(), memory, hooks=Hooks(Detail.FULL))
    assert output.weights is not None
    assert output.scores is not None
    diagonal = output.weights.diagonal(dim1=1, dim2=3).sum()
    (gradient,) = torch.autograd.grad(diagonal, output.scores)
    return float(output.scores.detach().var()), float(gradient.abs().sum())


def test_scaling_keeps_variance_and_gradient_as_the_width_grows_from_16_to_1024() -> None:
    narrow, wide = variance_and_gradient(ScaledDot, 16), variance_and_gradient(ScaledDot, 1024)
    assert narrow[0] == pytest.approx(1.0, rel=0.2)
    assert wide[0] == pytest.approx(1.0, rel=0.2)
    assert wide[1] == pytest.approx(narrow[1], rel=0.2)

    narrow, wide = variance_and_gradient(Dot, 16), variance_and_gradient(Dot, 1024)
    assert narrow[0] == pytest.approx(16, rel=0.2)
    assert wide[0] == pytest.approx(1024, rel=0.2)
    assert wide[1] < narrow[1] / 5


def test_the_scale_is_that_of_the_width_of_a_head() -> None:
    """A width of twelve in four heads makes d = 3."""
    attention = build("scaled-dot", query=12, key=12, value=12, heads=4)
    assert isinstance(attention.score, ScaledDot)
    close(torch.tensor(attention.score.scale), 1 / math.sqrt(3), 1e-7)

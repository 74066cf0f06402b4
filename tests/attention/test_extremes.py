"""Scores at the edge of what a float can hold, and widths that make plain dot products go there."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from attention.helpers import DTYPES, build, close, mask, rng
from heedful.attention import NORMALISERS, Attention, Detail, Dot, ScaledDot, Watch

ONES = [name for name in NORMALISERS if NORMALISERS[name].mass == "one"]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 1e-2}


def normalised(normaliser: str, scores: list[float], keep: str, dtype: torch.dtype) -> list[float]:
    """Weights in the dtype they were asked in, with finite gradients."""
    given = torch.tensor([scores], dtype=dtype, requires_grad=True)
    weights: Tensor = NORMALISERS[normaliser].apply(given, mask(keep))
    assert weights.dtype == dtype
    weights[0, 0].backward()  # type: ignore[no-untyped-call]
    assert given.grad is not None
    assert given.grad.isfinite().all()
    found: list[float] = weights[0].tolist()
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("normaliser", ONES)
def test_scores_of_ten_thousand(normaliser: str, dtype: torch.dtype) -> None:
    far = 1e4
    assert normalised(normaliser, [far, -far, 0.0], "111", dtype) == [1.0, 0.0, 0.0]
    assert normalised(normaliser, [far, far, -far], "111", dtype) == pytest.approx([0.5, 0.5, 0.0])
    assert normalised(normaliser, [far, far, -far, -far], "0111", dtype) == [0.0, 1.0, 0.0, 0.0]
    assert normalised(normaliser, [-far, far, -far], "101", dtype) == pytest.approx([0.5, 0.0, 0.5])


@pytest.mark.parametrize("dtype", DTYPES)
def test_readable_scores_far_below_a_forbidden_one(dtype: torch.dtype) -> None:
    share = 1 / (1 + math.exp(-1))
    within = TOLERANCE[dtype]
    found = normalised("softmax", [-200.0, -201.0, 0.0], "110", dtype)
    assert found == pytest.approx([share, 1 - share, 0.0], abs=within)
    assert normalised("sparsemax", [-200.0, -201.0, 0.0], "110", dtype) == [1.0, 0.0, 0.0]
    # entmax15 of scores 1 apart: halves 1/2 apart, threshold tau with tau^2 + (tau + 1/2)^2 = 1, tau >= 0
    tau = (-1 + math.sqrt(7)) / 4
    found = normalised("entmax15", [-200.0, -201.0, 0.0], "110", dtype)
    assert found == pytest.approx([(tau + 0.5) ** 2, tau**2, 0.0], abs=within)


@pytest.mark.parametrize("dtype", DTYPES)
def test_smoothed_softmax_far_below(dtype: torch.dtype) -> None:
    """At beta 0.5 two equal scores e weigh exp(e/2) / sqrt 2 each: a float where exp(e) is none any more."""
    low = -16.0
    wanted = math.exp(low / 2) / math.sqrt(2)
    found = normalised("smoothed-softmax", [low, low, 10.0], "110", dtype)
    assert found[:2] == pytest.approx([wanted] * 2, rel=max(TOLERANCE[dtype], 1e-3))
    assert found[2] == 0.0
    assert normalised("smoothed-softmax", [-1e4, -1e4, 1e4], "110", dtype) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("normaliser", NORMALISERS)
@pytest.mark.parametrize("rubbish", [math.nan, math.inf, -math.inf])
def test_a_forbidden_score_is_never_looked_at(normaliser: str, rubbish: float) -> None:
    keep = mask("101", "000")
    scores = torch.tensor([[0.5, rubbish, 1.0], [rubbish] * 3], dtype=torch.float64)
    clean = torch.tensor([[0.5, 0.0, 1.0], [0.0] * 3], dtype=torch.float64)
    assert torch.equal(
        NORMALISERS[normaliser].apply(scores, keep), NORMALISERS[normaliser].apply(clean, keep)
    )


@pytest.mark.parametrize("watch", [Watch(), Watch(Detail.WEIGHTS)], ids=["fused", "explicit"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_whole_look_at_scores_of_ten_thousand(dtype: torch.dtype, watch: Watch) -> None:
    attention = build("dot", dtype=dtype, query=1, key=1)
    keys = torch.tensor([[[100.0], [-100.0], [90.0], [100.0]]], dtype=dtype)
    values = torch.tensor([[[3.0], [5.0], [7.0], [11.0]]], dtype=dtype)
    memory = attention.prepare(keys, mask("1110"), values)
    query = torch.tensor([[[100.0], [-100.0]]], dtype=dtype, requires_grad=True)
    context, _, _ = attention.look(query, memory, watch=watch)
    assert context[0, :, 0].tolist() == [3.0, 5.0]
    context.sum().backward()  # type: ignore[no-untyped-call]
    assert query.grad is not None
    assert query.grad.isfinite().all()


def spread_and_slope(kind: type[Dot], width: int) -> tuple[float, float]:
    """The variance of the scores and how strongly weights answer to them, for keys and queries of width d."""
    attention = Attention(kind(width, width))
    keys, query = (torch.randn(1, 64, width, generator=rng(seed), dtype=torch.float64) for seed in (1, 2))
    memory = attention.prepare(keys, torch.ones(1, 64, dtype=torch.bool))
    _, look, _ = attention.look(query.requires_grad_(), memory, watch=Watch(Detail.FULL))
    assert look.weights is not None
    assert look.scores is not None
    chosen = look.weights.diagonal(dim1=1, dim2=3).sum()
    (slope,) = torch.autograd.grad(chosen, look.scores)
    return float(look.scores.detach().var()), float(slope.abs().sum())


def test_scaling_keeps_variance_and_gradient_as_the_width_grows_from_16_to_1024() -> None:
    narrow, wide = spread_and_slope(ScaledDot, 16), spread_and_slope(ScaledDot, 1024)
    assert narrow[0] == pytest.approx(1.0, rel=0.2)
    assert wide[0] == pytest.approx(1.0, rel=0.2)
    assert wide[1] == pytest.approx(narrow[1], rel=0.2)

    narrow, wide = spread_and_slope(Dot, 16), spread_and_slope(Dot, 1024)
    assert narrow[0] == pytest.approx(16, rel=0.2)
    assert wide[0] == pytest.approx(1024, rel=0.2)
    assert wide[1] < narrow[1] / 5


def test_the_scale_is_that_of_one_head() -> None:
    """d is the key's size per head: twelve in four heads is three."""
    attention = build("scaled-dot", query=12, key=12, value=12, heads=4)
    assert isinstance(attention.score, ScaledDot)
    close(torch.tensor(attention.score.scale), 1 / math.sqrt(3), 1e-7)

"""Torch's fused kernel: used exactly when nobody watches, and equal to the explicit path when it is."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attention.helpers import (
    COMBINATIONS,
    FULL,
    KEY,
    SEEN,
    Scene,
    build,
    close,
    mask,
    rng,
    scene,
)
from heedful import native
from heedful.attention import PLAIN, Attention, Detail, Watch, causal

KERNEL = "heedful.attention.attention.F.scaled_dot_product_attention"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The scale of every call of the fused kernel."""
    made: list[float] = []
    kernel = F.scaled_dot_product_attention

    def spy(*args: Any, **options: Any) -> Tensor:
        made.append(options["scale"])
        return kernel(*args, **options)

    monkeypatch.setattr(KERNEL, spy)
    return made


def looked(attention: Attention, given: Scene, watch: Watch) -> None:
    memory = attention.prepare(given.keys, given.keep, given.values)
    carry = attention.start(memory, given.query.shape[1])
    attention.look(given.query, memory, carry=carry, at=given.at, watch=watch, rng=rng())


@pytest.mark.parametrize(("score", "scale"), [("dot", 1.0), ("scaled-dot", KEY**-0.5)])
def test_the_kernel_runs_when_nobody_watches(score: str, scale: float, calls: list[float]) -> None:
    looked(build(score), scene(score), PLAIN)
    assert calls == [pytest.approx(scale)]
    looked(build(score), scene(score), Watch(Detail.FULL, sites=frozenset({"elsewhere"})))
    assert calls == [pytest.approx(scale)] * 2


@pytest.mark.parametrize("score", ["dot", "scaled-dot"])
def test_the_kernel_does_not_run_when_somebody_watches_or_edits(score: str, calls: list[float]) -> None:
    for watch in (
        SEEN,
        FULL,
        Watch(Detail.WEIGHTS, sites=frozenset({"cross"})),
        Watch(edit=lambda site, look, at: None),
    ):
        looked(build(score), scene(score), watch)
    assert calls == []


def test_the_kernel_runs_for_nothing_but_dot_products_under_softmax_over_the_whole_source(
    calls: list[float],
) -> None:
    for score, normaliser, placement in COMBINATIONS:
        before = len(calls)
        looked(build(score, normaliser, placement), scene(score), PLAIN)
        fused = len(calls) > before
        wanted = score in ("dot", "scaled-dot") and (normaliser, placement) == ("softmax", "global")
        assert fused == wanted, (score, normaliser, placement)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_kernel_is_not_trusted_with_half_precision_on_the_cpu(
    dtype: torch.dtype, calls: list[float]
) -> None:
    looked(build("scaled-dot", dtype=dtype), scene("scaled-dot").to(dtype), PLAIN)
    assert calls == []


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("heads", [0, 1, 11])
@pytest.mark.parametrize("score", ["dot", "scaled-dot"])
@pytest.mark.parametrize("masked", ["padding", "causal", "per query", "nothing readable"])
def test_both_paths_give_one_result_and_one_gradient(
    masked: str, score: str, heads: int, dtype: torch.dtype
) -> None:
    given = scene(score)
    keep = mask("0000000").expand(5, 7) if masked == "nothing readable" else given.keep
    query = torch.randn(5, 7, KEY, generator=rng(), dtype=dtype)
    per_query = torch.rand(5, 7, 7, generator=rng()) < 0.5
    per_query[0, 3] = False
    allow = {"causal": causal(7), "per query": per_query}.get(masked)
    attention = build(score, dtype=dtype, value=13, heads=heads)
    results = []
    for watch in (PLAIN, SEEN):
        leaves = [tensor.to(dtype).clone().requires_grad_() for tensor in (query, given.keys, given.values)]
        memory = attention.prepare(leaves[1], keep, leaves[2])
        context, look, _ = attention.look(leaves[0], memory, allow=allow, watch=watch)
        assert (look.weights is None) == (watch is PLAIN)
        learned = [*leaves, *attention.parameters()]
        gradients = torch.autograd.grad(context.sin().sum(), learned)
        results.append((context, *gradients))
    for fused, explicit in zip(*results, strict=True):
        assert fused.isfinite().all()
        close(fused, explicit, 1e-12 if dtype == torch.float64 else 1e-4)


@pytest.mark.parametrize("watch", [PLAIN, SEEN], ids=["fused", "explicit"])
def test_both_paths_drop_weights_in_training_alone_and_keep_their_expectation(watch: Watch) -> None:
    torch.manual_seed(1)
    attention = build("scaled-dot", dropout=0.5)
    given = scene("scaled-dot").sentence(0)
    memory = attention.prepare(given.keys, given.keep, given.values)
    many = given.query[:, :1].expand(-1, 20_000, -1)
    dropped, look, _ = attention.look(many, memory, watch=watch)
    attention.eval()
    calm, _, _ = attention.look(many, memory, watch=watch)
    close(
        calm, calm[:, :1].expand_as(calm), 1e-12
    )  # rows of one product: on some machines not to the last bit
    assert dropped.std(dim=1).min() > 0.01
    close(dropped.mean(dim=1), calm.mean(dim=1), 0.05)
    if look.weights is not None:  # what is recorded is the look itself, not what dropout left of it
        close(look.weights.sum(dim=-1), torch.ones(1, 20_000, 1, dtype=torch.float64), 1e-12)


@pytest.mark.parametrize("score", ["dot", "scaled-dot", "general"])
def test_our_kernel_for_dots_equals_the_explicit_path(score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands in where weights are wanted and no gradients are."""
    attention, given = build(score, dtype=torch.float32), scene(score).to(torch.float32)
    ran: list[float] = []
    kernel = native.dots

    def spy(*args: Any) -> tuple[Tensor, Tensor]:
        ran.append(args[-1])
        return kernel(*args)

    monkeypatch.setattr(native, "dots", spy)

    def look() -> tuple[Tensor, Tensor]:
        memory = attention.prepare(given.keys, given.keep, given.values)
        context, found, _ = attention.look(given.query, memory, at=given.at, allow=given.allow, watch=SEEN)
        assert found.weights is not None
        return context, found.weights

    wanted = look()
    assert not ran
    with torch.no_grad():
        found = look()
    assert len(ran) == 1
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs.detach(), rtol=0, atol=2e-6)


def test_our_kernel_for_additive_scores_minds_what_a_query_may_read() -> None:
    """It knows one mask for all queries of a sentence; where each has its own, the explicit path is taken."""
    attention, given = build("additive", dtype=torch.float32), scene("additive").to(torch.float32)
    memory = attention.prepare(given.keys, given.keep, given.values)

    def look() -> Tensor:
        _, found, _ = attention.look(given.query, memory, at=given.at, allow=given.allow, watch=SEEN)
        assert found.weights is not None
        return found.weights

    wanted = look()
    with torch.no_grad():
        torch.testing.assert_close(look(), wanted.detach(), rtol=0, atol=2e-6)

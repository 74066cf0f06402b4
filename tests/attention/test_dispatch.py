"""Kernels stand in exactly where they may, and equal the readable path where they do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attention.helpers import (
    COMBINATIONS,
    COVERED,
    FULL,
    KEY,
    WEIGHTS,
    Inputs,
    attend,
    build,
    close,
    make_inputs,
    mask,
    rng,
)
from heedful import kernels
from heedful.attention import NO_HOOKS, Attention, Detail, Dot, Hooks, causal
from heedful.attention.dispatch import AttentionCall, Kernel, find_kernel

KERNEL = "heedful.attention.dispatch.F.scaled_dot_product_attention"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The scale of every call of the fused kernel."""
    scales: list[float] = []
    kernel = F.scaled_dot_product_attention

    def spy(*args: Any, **options: Any) -> Tensor:
        scales.append(options["scale"])
        return kernel(*args, **options)

    monkeypatch.setattr(KERNEL, spy)
    return scales


def run_attention(attention: Attention, inputs: Inputs, hooks: Hooks) -> None:
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    carry = attention.initial_carry(memory, inputs.query.shape[1])
    attention(inputs.query, memory, carry=carry, positions=inputs.positions, hooks=hooks, rng=rng())


@pytest.mark.parametrize(("score", "scale"), [("dot", 1.0), ("scaled-dot", KEY**-0.5)])
def test_torchs_kernel_runs_when_nothing_is_recorded(score: str, scale: float, calls: list[float]) -> None:
    run_attention(build(score), make_inputs(score), NO_HOOKS)
    assert calls == [pytest.approx(scale)]
    run_attention(build(score), make_inputs(score), Hooks(Detail.FULL, sites=frozenset({"elsewhere"})))
    assert calls == [pytest.approx(scale)] * 2


@pytest.mark.parametrize("score", ["dot", "scaled-dot"])
def test_torchs_kernel_does_not_run_with_a_record_or_an_edit(score: str, calls: list[float]) -> None:
    for hooks in (
        WEIGHTS,
        FULL,
        Hooks(Detail.WEIGHTS, sites=frozenset({"cross"})),
        Hooks(edit=lambda site, output, at: None),
    ):
        run_attention(build(score), make_inputs(score), hooks)
    assert calls == []


def test_torchs_kernel_runs_only_for_dot_products_with_softmax_over_all_keys(
    calls: list[float],
) -> None:
    for score, normalizer, placement in COMBINATIONS:
        before = len(calls)
        run_attention(build(score, normalizer, placement), make_inputs(score), NO_HOOKS)
        fused = len(calls) > before
        expected = score in ("dot", "scaled-dot") and (normalizer, placement) == ("softmax", "global")
        assert fused == expected, (score, normalizer, placement)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_torchs_kernel_does_not_run_in_half_precision_on_the_cpu(dtype: torch.dtype, calls: list[float]) -> None:
    run_attention(build("scaled-dot", dtype=dtype), make_inputs("scaled-dot").to(dtype), NO_HOOKS)
    assert calls == []


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("heads", [0, 1, 11])
@pytest.mark.parametrize("score", ["dot", "scaled-dot"])
@pytest.mark.parametrize("masked", ["padding", "causal", "per query", "nothing readable"])
def test_torchs_kernel_equals_the_readable_path_with_its_gradients(
    masked: str, score: str, heads: int, dtype: torch.dtype
) -> None:
    inputs = make_inputs(score)
    keep = mask("0000000").expand(5, 7) if masked == "nothing readable" else inputs.keep
    query = torch.randn(5, 7, KEY, generator=rng(), dtype=dtype)
    per_query = torch.rand(5, 7, 7, generator=rng()) < 0.5
    per_query[0, 3] = False
    allowed = {"causal": causal(7), "per query": per_query}.get(masked)
    attention = build(score, dtype=dtype, value=13, heads=heads)
    results = []
    for hooks in (NO_HOOKS, WEIGHTS):
        leaves = [tensor.to(dtype).clone().requires_grad_() for tensor in (query, inputs.keys, inputs.values)]
        memory = attention.prepare(leaves[1], keep, leaves[2])
        context, output, _ = attend(attention, leaves[0], memory, allowed=allowed, hooks=hooks)
        assert (output.weights is None) == (hooks is NO_HOOKS)
        learned = [*leaves, *attention.parameters()]
        gradients = torch.autograd.grad(context.sin().sum(), learned)
        results.append((context, *gradients))
    for fused, explicit in zip(*results, strict=True):
        assert fused.isfinite().all()
        close(fused, explicit, 1e-12 if dtype == torch.float64 else 1e-4)


@pytest.mark.parametrize("hooks", [NO_HOOKS, WEIGHTS], ids=["torch", "readable"])
def test_both_paths_drop_weights_in_training_alone_and_keep_the_mean(hooks: Hooks) -> None:
    torch.manual_seed(1)
    attention = build("scaled-dot", dropout=0.5)
    inputs = make_inputs("scaled-dot").sentence(0)
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    many = inputs.query[:, :1].expand(-1, 20_000, -1)
    dropped, output, _ = attend(attention, many, memory, hooks=hooks)
    attention.eval()
    calm, _, _ = attend(attention, many, memory, hooks=hooks)
    close(calm, calm[:, :1].expand_as(calm), 1e-12)  # rows of one product: on some machines not to the last bit
    assert dropped.std(dim=1).min() > 0.01
    close(dropped.mean(dim=1), calm.mean(dim=1), 0.05)
    if output.weights is not None:  # the recorded weights are those before dropout
        close(output.weights.sum(dim=-1), torch.ones(1, 20_000, 1, dtype=torch.float64), 1e-12)


@pytest.mark.parametrize("score", ["dot", "scaled-dot", "general"])
def test_the_c_kernel_for_dot_products_equals_the_readable_path(score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs where weights are recorded and no gradients are."""
    attention, inputs = build(score, dtype=torch.float32), make_inputs(score).to(torch.float32)
    ran: list[float] = []
    kernel = kernels.dot_attention

    def spy(*args: Any) -> tuple[Tensor, Tensor]:
        ran.append(args[-1])
        return kernel(*args)

    monkeypatch.setattr(kernels, "dot_attention", spy)

    def run() -> tuple[Tensor, Tensor]:
        memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
        context, output, _ = attend(
            attention, inputs.query, memory, positions=inputs.positions, allowed=inputs.allowed, hooks=WEIGHTS
        )
        assert output.weights is not None
        return context, output.weights

    expected = run()
    assert not ran
    with torch.no_grad():
        actual = run()
    assert len(ran) == 1
    for from_c, readable in zip(actual, expected, strict=True):
        torch.testing.assert_close(from_c, readable.detach(), rtol=0, atol=2e-6)


def test_the_c_kernel_for_additive_scores_does_not_run_with_a_mask_per_query() -> None:
    """It takes one mask for all queries of a sentence."""
    attention, inputs = build("additive", dtype=torch.float32), make_inputs("additive").to(torch.float32)
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)

    def run() -> Tensor:
        output, _ = attention(inputs.query, memory, positions=inputs.positions, allowed=inputs.allowed, hooks=WEIGHTS)
        assert output.weights is not None
        return output.weights

    expected = run()
    with torch.no_grad():
        torch.testing.assert_close(run(), expected.detach(), rtol=0, atol=2e-6)


EDIT = Hooks(edit=lambda site, output, positions: None)


@pytest.mark.parametrize("attends_with_gradients", [True, False], ids=["gradients", "no gradients"])
@pytest.mark.parametrize(
    ("settings", "hooks", "with_gradients", "without_gradients"),
    [
        ({"score": "dot"}, NO_HOOKS, "torch fused", "torch fused"),
        ({"score": "scaled-dot"}, NO_HOOKS, "torch fused", "torch fused"),
        ({"score": "scaled-dot", "dtype": torch.float64}, NO_HOOKS, "torch fused", "torch fused"),
        ({"score": "scaled-dot", "dropout": 0.5}, NO_HOOKS, None, None),  # our dropout is faster on the CPU
        ({"score": "scaled-dot", "dropout": 0.5, "dtype": torch.float64}, NO_HOOKS, "torch fused", "torch fused"),
        ({"score": "scaled-dot", "normalizer": "sparsemax"}, NO_HOOKS, None, None),
        ({"score": "scaled-dot", "placement": "uniform"}, NO_HOOKS, None, None),
        ({"score": "scaled-dot"}, WEIGHTS, None, "C dot"),
        ({"score": "general"}, NO_HOOKS, None, "C dot"),
        ({"score": "general", "dtype": torch.float64}, NO_HOOKS, None, None),
        ({"score": "general", "heads": 2, "query": 4, "value": 13}, WEIGHTS, None, "C dot"),
        ({"score": "additive"}, NO_HOOKS, None, "C additive"),
        ({"score": "additive"}, WEIGHTS, None, "C additive"),
        ({"score": "additive", "dropout": 0.5}, NO_HOOKS, None, None),
        ({"score": "additive", "heads": 2, "query": 4, "value": 13}, NO_HOOKS, None, None),
        ({"score": "additive"}, FULL, None, None),
        ({"score": "dot"}, FULL, None, None),
        ({"score": "additive"}, EDIT, None, None),
        ({"score": "dot"}, EDIT, None, None),
        ({"score": COVERED}, NO_HOOKS, None, None),
        ({"score": "concat"}, NO_HOOKS, None, None),
    ],
)
def test_the_first_kernel_that_supports_a_call_runs(
    settings: dict[str, Any],
    hooks: Hooks,
    with_gradients: str | None,
    without_gradients: str | None,
    attends_with_gradients: bool,
    kernels_used: list[str | None],
) -> None:
    if kernels.library() is None:
        pytest.skip("the kernels are not built")
    settings = {"dtype": torch.float32, **settings}
    attention = build(**settings)
    inputs = make_inputs(settings["score"]).to(settings["dtype"])
    if "heads" in settings:
        inputs = inputs._replace(query=torch.cat([inputs.query, inputs.query], dim=-1))
    with torch.set_grad_enabled(attends_with_gradients):
        run_attention(attention, inputs, hooks)
    assert kernels_used == [with_gradients if attends_with_gradients else without_gradients]


@pytest.fixture
def kernels_used(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The name of the kernel of every call; None for the readable path."""
    names: list[str | None] = []

    def spy(call: AttentionCall) -> Kernel | None:
        kernel = find_kernel(call)
        names.append(None if kernel is None else kernel.name)
        return kernel

    monkeypatch.setattr("heedful.attention.attention.find_kernel", spy)
    return names


class Halved(Dot):
    """A score of a user that is a dot product only by inheritance."""

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return super().forward(query, keys) / 2


def test_a_subclass_of_a_score_is_not_taken_for_the_score(kernels_used: list[str | None]) -> None:
    attention, inputs = Attention(Halved(KEY, KEY)), make_inputs("dot").to(torch.float32)
    with torch.no_grad():
        run_attention(attention, inputs, NO_HOOKS)
        run_attention(attention, inputs, WEIGHTS)
    assert kernels_used == [None, None]

"""Products in bfloat16: only they are rounded, in the forward and the backward pass."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function

from heedful.data.batch import TextBatch
from heedful.models import Seq2Seq
from heedful.training import Callbacks, bf16
from heedful.training.bf16 import MIN_MULTIPLICATIONS, Bf16Products
from heedful.training.loop import train
from training.test_threaded_backward import build_task_and_model, first_batch, gradients


def round_to_bf16(x: Tensor) -> Tensor:
    return x.bfloat16().float()


class EveryProduct(Function):
    """Every kind of product, in the forward and the backward pass, as fused layers compute them."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        out = torch.empty(len(a), b.shape[1])
        torch.mm(a, b, out=out)
        return out + torch.addmm(bias, a, b) + out.clone().addmm_(a, b) + a @ b

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor, None]:
        a, b = ctx.saved_tensors
        return grads[0] @ b.T, torch.mm(a.T, grads[0]), None


def assert_close(actual: Tensor, expected: Tensor) -> None:
    """Compare to the 8 bits of a bfloat16 result."""
    torch.testing.assert_close(actual, expected, rtol=0.01, atol=0.01 * float(expected.abs().max()))


def test_products_are_rounded_in_both_passes() -> None:
    torch.manual_seed(1)
    a, b = torch.randn(80, 90, requires_grad=True), torch.randn(90, 100, requires_grad=True)
    bias = torch.randn(100)
    with Bf16Products([]):
        y = EveryProduct.apply(a, b, bias)  # type: ignore[no-untyped-call]
        y.square().sum().backward()
    product = round_to_bf16(a.detach()) @ round_to_bf16(b.detach())
    assert_close(y.detach(), 5 * product + bias)
    assert y.dtype == torch.float32
    assert float((y - (5 * (a @ b) + bias)).detach().abs().max()) > 1e-3  # not computed in float32
    grad = round_to_bf16(2 * y.detach())
    assert_close(_grad(a), grad @ round_to_bf16(b.detach()).T)
    assert_close(_grad(b), round_to_bf16(a.detach()).T @ grad)


def _grad(x: Tensor) -> Tensor:
    assert x.grad is not None
    return x.grad


def test_linear_layers_are_rounded_and_small_ones_stay_exact() -> None:
    torch.manual_seed(1)
    wide, small = nn.Linear(64, 96), nn.Linear(4, 4)
    x, y = torch.randn(3, 40, 64, requires_grad=True), torch.randn(5, 4)
    assert x.numel() * 96 >= MIN_MULTIPLICATIONS > y.numel() * 4
    with Bf16Products([*wide.parameters(), *small.parameters()]) as mode:
        out = wide(x)
        assert torch.equal(small(y), nn.functional.linear(y, small.weight, small.bias))
        out.square().sum().backward()
        assert len(mode.cache) == 1
    assert_close(out.detach(), (round_to_bf16(x) @ round_to_bf16(wide.weight).T + wide.bias).detach())
    g = round_to_bf16(2 * out.detach()).flatten(end_dim=1)
    assert_close(_grad(x).flatten(end_dim=1), (g @ round_to_bf16(wide.weight)).detach())
    assert_close(_grad(wide.weight), (g.T @ round_to_bf16(x.flatten(end_dim=1))).detach())
    assert_close(_grad(wide.bias), 2 * out.detach().flatten(end_dim=1).sum(dim=0))
    mode.clear_cache()
    assert not mode.cache


def backward(task: Any, model: Seq2Seq, batch: TextBatch, mode: Bf16Products | None) -> dict[str, Tensor]:
    model.zero_grad()
    with mode or nullcontext():
        task.loss(model, batch).total.backward()
    return gradients(model)


@pytest.mark.parametrize("name", ["cgru", "luong", "transformer", "seq2seq"])
def test_gradients_of_a_model_are_nearly_those_of_float32(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bf16, "MIN_MULTIPLICATIONS", 1)
    task, model = build_task_and_model(name)
    batch = first_batch(task)
    expected = backward(task, model, batch, None)
    actual = backward(task, model, batch, Bf16Products(model.parameters()))
    assert actual.keys() == expected.keys()
    first, second = (torch.cat([g.flatten() for g in grads.values()]) for grads in (expected, actual))
    assert not torch.equal(first, second)
    assert float(torch.cosine_similarity(first, second, dim=0)) > 0.999


@pytest.mark.parametrize("threads", [1, 2])
def test_training_uses_bf16_products_where_the_cpu_has_them(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    losses = {}
    for supported in (True, False):
        monkeypatch.setattr("heedful.training.loop.has_bf16_products", lambda supported=supported: supported)
        monkeypatch.setattr(bf16, "MIN_MULTIPLICATIONS", 1)
        task, model = build_task_and_model(precision="bf16-mixed", epochs=1, metric="loss", threads=threads)
        result = train(task, model, task.recipe.training, tmp_path / str(supported), Callbacks(log=lines.append))
        losses[supported] = result.reports[-1].train_loss
        assert all(w.dtype == torch.float32 for w in model.parameters())
    assert losses[True] != losses[False]
    assert losses[True] == pytest.approx(losses[False], rel=0.01)
    about_cpu = [line for line in lines if "CPU" in line]
    assert about_cpu == ["this CPU has no bfloat16 instructions: training runs in float32"]

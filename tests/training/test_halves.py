"""Products in bfloat16: rounded, nothing else changed, and the kernels still in use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function

from heedful.data.batch import TextBatch
from heedful.models import Seq2Seq
from heedful.training import halves
from heedful.training.halves import LEAST, Halves
from heedful.training.loop import train
from training.test_shards import first, made, slopes


def rounded(x: Tensor) -> Tensor:
    return x.bfloat16().float()


class Products(Function):
    """As the layers do it: products by hand, on the way back too."""

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


def close(found: Tensor, wanted: Tensor) -> None:
    """To the 8 bits that a result has, of factors rounded before."""
    torch.testing.assert_close(found, wanted, rtol=0.01, atol=0.01 * float(wanted.abs().max()))


def test_products_are_rounded_on_both_ways() -> None:
    torch.manual_seed(1)
    a, b = torch.randn(80, 90, requires_grad=True), torch.randn(90, 100, requires_grad=True)
    bias = torch.randn(100)
    with Halves([]):
        y = Products.apply(a, b, bias)  # type: ignore[no-untyped-call]
        y.square().sum().backward()
    product = rounded(a.detach()) @ rounded(b.detach())
    close(y.detach(), 5 * product + bias)
    assert y.dtype == torch.float32
    assert float((y - (5 * (a @ b) + bias)).detach().abs().max()) > 1e-3  # it was not exact
    slope = rounded(2 * y.detach())
    close(_grad(a), slope @ rounded(b.detach()).T)
    close(_grad(b), rounded(a.detach()).T @ slope)


def _grad(x: Tensor) -> Tensor:
    assert x.grad is not None
    return x.grad


def test_linear_layers_too_and_small_ones_stay_exact() -> None:
    torch.manual_seed(1)
    wide, small = nn.Linear(64, 96), nn.Linear(4, 4)
    x, y = torch.randn(3, 40, 64, requires_grad=True), torch.randn(5, 4)
    assert x.numel() * 96 >= LEAST > y.numel() * 4
    with Halves([*wide.parameters(), *small.parameters()]) as mode:
        out = wide(x)
        assert torch.equal(small(y), nn.functional.linear(y, small.weight, small.bias))
        out.square().sum().backward()
        assert len(mode.kept) == 1
    close(out.detach(), (rounded(x) @ rounded(wide.weight).T + wide.bias).detach())
    g = rounded(2 * out.detach()).flatten(end_dim=1)
    close(_grad(x).flatten(end_dim=1), (g @ rounded(wide.weight)).detach())
    close(_grad(wide.weight), (g.T @ rounded(x.flatten(end_dim=1))).detach())
    close(_grad(wide.bias), 2 * out.detach().flatten(end_dim=1).sum(dim=0))
    mode.forget()
    assert not mode.kept


def gradient(task: Any, model: Seq2Seq, batch: TextBatch, mode: Halves | None) -> dict[str, Tensor]:
    model.zero_grad()
    if mode is None:
        task.loss(model, batch).total.backward()
    else:
        with mode:
            task.loss(model, batch).total.backward()
    return slopes(model)


@pytest.mark.parametrize("name", ["cgru", "luong", "transformer", "seq2seq"])
def test_a_model_learns_nearly_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halves, "LEAST", 1)
    task, model = made(name)
    batch = first(task)
    wanted = gradient(task, model, batch, None)
    found = gradient(task, model, batch, Halves(model.parameters()))
    assert found.keys() == wanted.keys()
    one, two = (torch.cat([g.flatten() for g in both.values()]) for both in (wanted, found))
    assert not torch.equal(one, two)
    assert float(torch.cosine_similarity(one, two, dim=0)) > 0.999


@pytest.mark.parametrize("threads", [1, 2])
def test_training_goes_by_halves_where_the_cpu_can(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    lost = {}
    for able in (True, False):
        monkeypatch.setattr("heedful.training.loop.has_halves", lambda able=able: able)
        monkeypatch.setattr(halves, "LEAST", 1)
        task, model = made(precision="bf16-mixed", epochs=1, metric="loss", threads=threads)
        outcome = train(task, model, task.recipe.training, tmp_path / str(able), say=said.append)
        lost[able] = outcome.reports[-1].train_loss
        assert all(w.dtype == torch.float32 for w in model.parameters())
    assert lost[True] != lost[False]
    assert lost[True] == pytest.approx(lost[False], rel=0.01)
    assert [s for s in said if "CPU" in s] == [
        "this CPU has no products of bfloat16: all is computed in float32"
    ]

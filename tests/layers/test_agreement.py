"""R-Drop: two readings of a batch, and the price of their difference, against plain loops."""

from __future__ import annotations

import math

import pytest
import torch

import small
from heedful.config import DataConfig, ModelConfig, Recipe, TrainingConfig, WorldConfig
from heedful.layers import entropy
from heedful.layers.entropy import agreed_entropy, plainly_agreed
from heedful.layers.readout import Output
from heedful.tasks.writing import loss_of


def literal(one: list[float], two: list[float], gold: int, smoothing: float, price: float) -> float:
    """Liang 2021, of one word: both cross-entropies, and both divergences by half the price; then halved."""

    def softmax(x: list[float]) -> list[float]:
        return [math.exp(s) / sum(map(math.exp, x)) for s in x]

    def smoothed(p: list[float]) -> float:
        wanted = [smoothing / len(p) + (1 - smoothing) * (k == gold) for k in range(len(p))]
        return -sum(w * math.log(q) for w, q in zip(wanted, p, strict=True))

    def far(p: list[float], q: list[float]) -> float:
        return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))

    p, q = softmax(one), softmax(two)
    return (smoothed(p) + smoothed(q) + price * (far(p, q) + far(q, p)) / 2) / 2


@pytest.mark.parametrize("price", [0.0, 5.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_it_is_the_papers_loss(price: float, smoothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entropy, "PIECE", 60)  # several pieces
    torch.manual_seed(0)
    output = Output(5, 11)
    one, two = torch.randn(2, 7, 5, requires_grad=True)
    gold = torch.randint(11, (7,))
    total, plain = agreed_entropy(one, two, output, gold, smoothing, price)
    rows = zip(output(one).tolist(), output(two).tolist(), gold.tolist(), strict=True)
    assert total.item() == pytest.approx(
        sum(literal(a, b, g, smoothing, price) for a, b, g in rows), abs=1e-4
    )
    each = zip(output(one).tolist(), output(two).tolist(), gold.tolist(), strict=True)
    assert plain.tolist() == pytest.approx([literal(a, b, g, 0.0, 0.0) for a, b, g in each], abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_its_way_back_is_that_of_the_plain_formula(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    output = Output(5, 11).to(dtype)
    one, two = (
        torch.randn(7, 5, dtype=dtype, requires_grad=True),
        torch.randn(7, 5, dtype=dtype, requires_grad=True),
    )
    gold = torch.randint(11, (7,))
    leaves = [one, two, output.weight, output.bias]
    total, plain = agreed_entropy(one, two, output, gold, 0.1, 4.0)
    wanted, explicit = plainly_agreed(output(one), output(two), gold, 0.1, 4.0)
    torch.testing.assert_close(total, wanted, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(plain, explicit, atol=1e-5, rtol=1e-5)
    found, theirs = torch.autograd.grad(3 * total, leaves), torch.autograd.grad(3 * wanted, leaves)
    for mine, other in zip(found, theirs, strict=True):
        torch.testing.assert_close(mine, other, atol=1e-5, rtol=1e-4)


def asked(model: ModelConfig, price: float) -> Recipe:
    return Recipe(
        data=DataConfig(world=WorldConfig()),
        model=model,
        training=TrainingConfig(agreement=price, smoothing=0.1),
    )


def test_readings_that_agree_pay_nothing() -> None:
    config = small.preset("cgru")
    model = small.built(config).train()
    plain, twice = (loss_of(model, small.batch(), asked(config, p)).total.item() for p in (0.0, 5.0))
    assert twice == pytest.approx(plain)


def test_readings_that_differ_pay() -> None:
    config = small.preset("cgru", dropout=0.5)
    model = small.wild(small.built(config)).train()
    losses = []
    for price in (1e-9, 5.0):
        torch.manual_seed(4)  # the same elements are dropped
        losses.append(loss_of(model, small.batch(), asked(config, price)).total.item())
    assert losses[1] > losses[0] + 1
    model.eval()  # nobody pays when nothing is learnt
    plain, twice = (loss_of(model, small.batch(), asked(config, p)).total.item() for p in (0.0, 5.0))
    assert twice == plain


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"copying": True}, "not with model.copying"),
        ({"attention__placement": "hard"}, "not with attention.placement"),
    ],
)
def test_what_it_cannot_be_is_said(changes: dict[str, object], said: str) -> None:
    tokenizer = {"shared": True}
    with pytest.raises(ValueError, match=said):
        Recipe.model_validate(
            {
                "data": {"world": {}},
                "tokenizer": tokenizer,
                "model": small.preset("bigru-gru", **changes).model_dump(),
                "training": {"agreement": 1.0},
            }
        )

"""The R-Drop loss (Liang 2021): against plain loops, and as a part of training."""

from __future__ import annotations

import math

import pytest
import torch

import small_models
from heedful.config import DataConfig, ModelConfig, Recipe, TrainingConfig, WorldConfig
from heedful.fused import cross_entropy
from heedful.fused.cross_entropy import rdrop_loss
from heedful.layers.readout import Output
from heedful.tasks.generation_loss import generation_loss


def rdrop_by_loops(first: list[float], second: list[float], target: int, smoothing: float, rdrop: float) -> float:
    """Liang 2021, eq. 2-4, for one word and halved: both cross-entropies and both divergences."""

    def softmax(x: list[float]) -> list[float]:
        return [math.exp(s) / sum(map(math.exp, x)) for s in x]

    def smoothed_cross_entropy(p: list[float]) -> float:
        targets = [smoothing / len(p) + (1 - smoothing) * (k == target) for k in range(len(p))]
        return -sum(w * math.log(q) for w, q in zip(targets, p, strict=True))

    def divergence(p: list[float], q: list[float]) -> float:
        return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))

    p, q = softmax(first), softmax(second)
    entropies = smoothed_cross_entropy(p) + smoothed_cross_entropy(q)
    return (entropies + rdrop * (divergence(p, q) + divergence(q, p)) / 2) / 2


@pytest.mark.parametrize("rdrop", [0.0, 5.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_loss_is_that_of_the_paper(rdrop: float, smoothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_entropy, "CHUNK", 60)  # several chunks
    torch.manual_seed(0)
    output = Output(5, 11)
    first, second = torch.randn(2, 7, 5, requires_grad=True)
    targets = torch.randint(11, (7,))
    total, nll = output.rdrop_loss(first, second, targets, smoothing, rdrop)
    rows = list(zip(output(first).tolist(), output(second).tolist(), targets.tolist(), strict=True))
    expected = sum(rdrop_by_loops(p, q, target, smoothing, rdrop) for p, q, target in rows)
    assert total.item() == pytest.approx(expected, abs=1e-4)
    assert nll.tolist() == pytest.approx([rdrop_by_loops(p, q, target, 0.0, 0.0) for p, q, target in rows], abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_equal_those_of_the_plain_formula(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    output = Output(5, 11).to(dtype)
    first, second = (torch.randn(7, 5, dtype=dtype, requires_grad=True) for _ in range(2))
    targets = torch.randint(11, (7,))
    leaves = [first, second, output.weight, output.bias]
    total, nll = output.rdrop_loss(first, second, targets, 0.1, 4.0)
    expected_total, expected_nll = rdrop_loss(output(first), output(second), targets, 0.1, 4.0)
    torch.testing.assert_close(total, expected_total, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(nll, expected_nll, atol=1e-5, rtol=1e-5)
    expected_gradients = torch.autograd.grad(3 * expected_total, leaves)
    for actual, expected in zip(torch.autograd.grad(3 * total, leaves), expected_gradients, strict=True):
        torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-4)


def make_recipe(model: ModelConfig, rdrop: float) -> Recipe:
    training = TrainingConfig(rdrop=rdrop, label_smoothing=0.1)
    return Recipe(data=DataConfig(world=WorldConfig()), model=model, training=training)


def test_equal_forward_passes_cost_nothing() -> None:
    config = small_models.small_preset("cgru")
    model = small_models.build_model(config).train()
    plain, with_rdrop = (
        generation_loss(model, small_models.small_batch(), make_recipe(config, rdrop)).total.item()
        for rdrop in (0.0, 5.0)
    )
    assert with_rdrop == pytest.approx(plain)


def test_different_forward_passes_cost_in_training_alone() -> None:
    config = small_models.small_preset("cgru", dropout=0.5)
    model = small_models.randomize_weights(small_models.build_model(config)).train()
    batch, losses = small_models.small_batch(), []
    for rdrop in (1e-9, 5.0):
        torch.manual_seed(4)  # the same elements are dropped
        losses.append(generation_loss(model, batch, make_recipe(config, rdrop)).total.item())
    assert losses[1] > losses[0] + 1
    model.eval()
    plain, with_rdrop = (generation_loss(model, batch, make_recipe(config, rdrop)).total.item() for rdrop in (0.0, 5.0))
    assert with_rdrop == plain


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"copying": True}, "cannot be combined with model.copying"),
        ({"attention__placement": "hard"}, "cannot be combined with attention.placement"),
    ],
)
def test_settings_that_exclude_rdrop_are_refused(changes: dict[str, object], message: str) -> None:
    recipe = {
        "data": {"world": {}},
        "tokenizer": {"shared": True},
        "model": small_models.small_preset("bigru-gru", **changes).model_dump(),
        "training": {"rdrop": 1.0},
    }
    with pytest.raises(ValueError, match=message):
        Recipe.model_validate(recipe)

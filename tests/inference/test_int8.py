"""Quantized models: which matrices become int8, and how close they stay."""

from __future__ import annotations

import torch
from torch import nn

import small_models
from heedful.inference.int8 import MIN_ENTRIES, Int8Linear, quantize


def test_a_quantized_linear_layer_is_close_for_any_shape() -> None:
    torch.manual_seed(0)
    linear = nn.Linear(64, 96)
    quantized = Int8Linear(linear.weight, linear.bias)
    for shape in ((64,), (5, 64), (2, 3, 64), (0, 64)):
        x = torch.randn(shape)
        expected = linear(x)
        assert quantized(x).shape == expected.shape
        assert (quantized(x) - expected).norm() <= 0.02 * expected.norm()


def test_large_matrices_are_quantized_and_embeddings_are_not() -> None:
    widths: dict[str, object] = {"embedding": 64, "encoder__hidden": 64, "decoder__hidden": 64}
    config = small_models.small_preset("transformer", **widths, encoder__heads=4, decoder__heads=4)
    model = small_models.build_model(config, 90).float()
    quantized = quantize(model)
    for name, module in quantized.named_modules():
        original = model.get_submodule(name) if name in dict(model.named_modules()) else None
        if isinstance(original, nn.Linear):
            assert isinstance(module, Int8Linear) == (original.weight.numel() >= MIN_ENTRIES), name
    assert isinstance(quantized.decoder.output, Int8Linear)
    assert torch.equal(quantized.embedding.weight, model.embedding.weight)


def test_the_original_model_is_unchanged() -> None:
    widths: dict[str, object] = {"embedding": 64, "encoder__hidden": 64, "decoder__hidden": 64}
    config = small_models.small_preset("cgru", **widths, attention__hidden=64)
    model = small_models.build_model(config, 90).float()
    before = model(small_models.small_batch()).logits
    quantized = quantize(model.train())
    assert not quantized.training
    assert torch.equal(model.eval()(small_models.small_batch()).logits, before)
    assert not any(isinstance(module, Int8Linear) for module in model.modules())

"""Convolutional encoder and decoder (Gehring 2017) against their equations in plain loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import small_models
from heedful.attention import NO_HOOKS
from heedful.config import ModelConfig
from heedful.layers.convolution import ConvDecoder, ConvEncoder
from heedful.layers.embedding import sinusoids
from layers.loops import dot, plus, scaled, sigmoid, softmax, times, weighted_sum

HALF = math.sqrt(0.5)


def convolution(layer: nn.Conv1d, window: list[list[float]]) -> list[float]:
    """Return the gated output of a filter over `kernel_size` positions."""
    taps = [times(layer.weight[:, :, offset], x) for offset, x in enumerate(window)]
    out = plus(*taps, layer.bias.tolist())  # type: ignore[union-attr]
    half = len(out) // 2
    return [value * gate for value, gate in zip(out[:half], sigmoid(out[half:]), strict=True)]


def config() -> ModelConfig:
    changes: dict[str, object] = {"attention__score": "dot"}
    for side in ("encoder", "decoder"):
        changes |= {f"{side}__layers": 2, f"{side}__positions": "sinusoidal"}
    return small_models.small_preset("conv-conv", **changes)


@pytest.mark.parametrize("length", [1, 3, 5])
def test_the_encoder_is_that_of_the_paper(length: int) -> None:
    encoder = small_models.build_model(config()).encoder
    assert isinstance(encoder, ConvEncoder)
    torch.manual_seed(1)
    inputs = torch.randn(2, 5, 6, dtype=torch.float64)
    keep = torch.arange(5) < torch.tensor([[5], [length]])
    output = encoder(inputs, keep)
    weight, bias = encoder.input_projection.weight, encoder.input_projection.bias
    words = zip(inputs[1, :length].tolist(), sinusoids(length, 6).tolist(), strict=True)
    embedded = [times(weight, plus(word, position), bias) for word, position in words]
    x, zeros = embedded, [0.0] * 6
    for layer in encoder.convolutions:
        padded = [zeros, *x, zeros]
        x = [scaled(HALF, plus(convolution(layer, padded[i : i + 3]), x[i])) for i in range(length)]
    for i in range(length):
        assert output.keys[1, i].tolist() == pytest.approx(x[i], abs=1e-6)
        assert output.values[1, i].tolist() == pytest.approx(scaled(HALF, plus(x[i], embedded[i])), abs=1e-6)
    assert not output.keys[1, length:].any()


def test_the_decoder_is_that_of_the_paper() -> None:
    model = small_models.build_model(config())
    decoder, batch = model.decoder, small_models.small_batch()
    assert isinstance(decoder, ConvDecoder)
    encoded = model.encode(batch)
    ids = torch.tensor([[4, 5, 6]] * 3)
    output = decoder(decoder.initial_state(encoded), ids, NO_HOOKS)
    length = int(encoded.keep[0].sum())
    keys, values = encoded.keys[0, :length].tolist(), encoded.values[0, :length].tolist()
    words = zip(decoder.embedding.weight[ids[0]].tolist(), sinusoids(3, 6).tolist(), strict=True)
    weight, bias = decoder.input_projection.weight, decoder.input_projection.bias
    embedded = [times(weight, plus(word, position), bias) for word, position in words]
    x, zeros = embedded, [0.0] * 6
    for depth, layer in enumerate(decoder.convolutions):
        padded, after = [zeros, zeros, *x], []
        for t in range(3):
            gated = convolution(layer, padded[t : t + 3])
            to_query, to_hidden = decoder.query_projections[depth], decoder.context_projections[depth]
            query = scaled(HALF, plus(times(to_query.weight, gated, to_query.bias), embedded[t]))
            context = weighted_sum(softmax([dot(query, key) for key in keys]), values)
            attended = scaled(HALF, plus(gated, times(to_hidden.weight, context, to_hidden.bias)))
            after.append(scaled(HALF, plus(attended, x[t])))
        x = after
    out = decoder.output_projection
    for t in range(3):
        assert output.features[0, t].tolist() == pytest.approx(times(out.weight, x[t], out.bias), abs=1e-6)
    assert decoder.alignment_site == "cross.1"

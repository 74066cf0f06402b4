"""Transformer layers (Vaswani 2017) against torch's own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import small_models
from heedful.attention import NO_HOOKS, Attention, Detail, Hooks, causal
from heedful.config import DecoderConfig, EncoderConfig
from heedful.layers.state import EncoderOutput
from heedful.layers.transformer import DecoderLayer, EncoderLayer, TransformerDecoder, TransformerEncoder

WIDTH, HEADS, FEED_FORWARD = 8, 2, 11
SETTINGS = {"kind": "transformer", "hidden": WIDTH, "heads": HEADS, "feedforward": FEED_FORWARD, "norm_epsilon": 1e-3}


def copy_attention(mine: Attention, theirs: nn.MultiheadAttention) -> None:
    """Copy the weights of our attention into torch's."""
    heads = mine.heads
    assert heads is not None
    projections = heads.to_query, heads.to_key, heads.to_value
    theirs.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
    theirs.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
    theirs.out_proj.weight.copy_(heads.out.weight)
    theirs.out_proj.bias.copy_(heads.out.bias)


def copy_module(mine: nn.Module, theirs: nn.Module) -> None:
    theirs.load_state_dict(mine.state_dict())


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(2)
    return torch.randn(3, 5, WIDTH).double(), torch.arange(5) < torch.tensor([[5], [3], [1]])


def randomized(layer: EncoderLayer) -> EncoderLayer:
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.4)
    return layer.double().eval()


@pytest.mark.parametrize("norm", ["pre", "post"])
@torch.no_grad()
def test_an_encoder_layer_equals_torchs(norm: str) -> None:
    layer = randomized(EncoderLayer(EncoderConfig.model_validate({**SETTINGS, "norm": norm}), 0.1, "enc.0"))
    reference = nn.TransformerEncoderLayer(
        WIDTH, HEADS, FEED_FORWARD, layer_norm_eps=1e-3, batch_first=True, norm_first=norm == "pre"
    )
    reference = reference.double().eval()
    copy_attention(layer.self_attention, reference.self_attn)
    copy_module(layer.feed_forward[0], reference.linear1)
    copy_module(layer.feed_forward[3], reference.linear2)
    copy_module(layer.self_residual.norm, reference.norm1)
    copy_module(layer.feed_forward_residual.norm, reference.norm2)
    x, keep = inputs()
    actual, _ = layer(x, keep, Hooks(Detail.WEIGHTS))
    expected = reference(x, src_key_padding_mask=~keep)
    torch.testing.assert_close(actual[keep], expected[keep], rtol=0, atol=1e-12)
    allowed = causal(5, x.device)
    actual, _ = layer(x, keep, NO_HOOKS, allowed)
    expected = reference(x, src_mask=~allowed[0], src_key_padding_mask=~keep)
    torch.testing.assert_close(actual[keep], expected[keep], rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", ["pre", "post"])
@torch.no_grad()
def test_a_decoder_layer_equals_torchs(norm: str) -> None:
    """The layer runs inside a one-layer decoder without embeddings' scale, positions or final norm."""
    layer = randomized(DecoderLayer(DecoderConfig.model_validate({**SETTINGS, "norm": norm}), 0.1, "dec.0", WIDTH))
    assert isinstance(layer, DecoderLayer)
    reference = nn.TransformerDecoderLayer(
        WIDTH, HEADS, FEED_FORWARD, layer_norm_eps=1e-3, batch_first=True, norm_first=norm == "pre"
    )
    reference = reference.double().eval()
    copy_attention(layer.self_attention, reference.self_attn)
    copy_attention(layer.cross_attention, reference.multihead_attn)
    for mine, theirs in (
        (layer.feed_forward[0], reference.linear1),
        (layer.feed_forward[3], reference.linear2),
        (layer.self_residual.norm, reference.norm1),
        (layer.cross_residual.norm, reference.norm2),
        (layer.feed_forward_residual.norm, reference.norm3),
    ):
        copy_module(mine, theirs)
    source, keep = inputs()
    config = small_models.small_preset(
        "transformer", embedding=WIDTH, encoder__hidden=WIDTH, decoder__hidden=WIDTH, decoder__heads=HEADS,
        decoder__layers=1, decoder__norm="post",
    )  # fmt: skip
    decoder = small_models.build_model(config).decoder
    assert isinstance(decoder, TransformerDecoder)
    decoder.layers[0] = layer
    ids = torch.tensor([[4, 5, 6]] * 3)
    output = decoder(decoder.initial_state(EncoderOutput(source, source, keep)), ids, NO_HOOKS)
    x = decoder.positions(decoder.embedding(ids) * WIDTH**0.5)
    expected = reference(x, source, tgt_mask=~causal(3, x.device)[0], memory_key_padding_mask=~keep)
    torch.testing.assert_close(output.features, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("layers", "depth"), [(1, 0), (2, 1), (3, 1), (6, 4)])
def test_alignments_are_those_of_the_penultimate_layer(layers: int, depth: int) -> None:
    model = small_models.build_model(small_models.small_preset("transformer", decoder__layers=layers))
    assert model.alignment_site == f"dec.{depth}.cross"


def test_only_pre_norm_ends_with_a_norm() -> None:
    for norm, kind in (("pre", nn.LayerNorm), ("post", nn.Identity)):
        config = small_models.small_preset("transformer", encoder__norm=norm, decoder__norm=norm)
        model = small_models.build_model(config)
        assert isinstance(model.encoder, TransformerEncoder)
        assert isinstance(model.encoder.final_norm, kind)

"""Pre-norm Transformers as C structs (see `kernels/csrc/transformer.c`)."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful import kernels
from heedful.attention import AttentionOutput, Detail, Hooks
from heedful.errors import ShapeError
from heedful.kernels import Int8Product
from heedful.kernels.structs import Int8Matrix, LayerNorm, Transformer, TransformerLayer
from heedful.layers.readout import Output
from heedful.layers.state import EncoderOutput
from heedful.layers.transformer import DecoderLayer, EncoderLayer, TransformerDecoder, TransformerEncoder
from heedful.optional import not_none

Pointees = list[object]
"""The objects that own the memory a struct points to; they must live as long as the struct."""


def encoder_supported(encoder: nn.Module) -> bool:
    """Return whether `CEncoder` can run an encoder."""
    if not isinstance(encoder, TransformerEncoder) or not isinstance(encoder.input_projection, nn.Identity):
        return False
    return all(layer.self_residual.pre_norm for layer in encoder.layers)


def decoder_supported(decoder: nn.Module) -> bool:
    """Return whether `CDecoder` can hold a decoder."""
    if not isinstance(decoder, TransformerDecoder):
        return False
    projections = decoder.input_projection, decoder.output_projection
    no_projections = all(isinstance(projection, nn.Identity) for projection in projections)
    return no_projections and all(layer.self_residual.pre_norm for layer in decoder.layers)


class CEncoder:
    """An encoder as one call into C: sentences are concatenated, without padding."""

    def __init__(self, encoder: nn.Module) -> None:
        assert isinstance(encoder, TransformerEncoder)
        assert isinstance(encoder.final_norm, nn.LayerNorm)
        self.encoder, self.sites = encoder, [layer.self_site for layer in encoder.layers]
        self.heads = encoder.layers[0].self_attention.site.heads
        pointees: Pointees = []
        layers = _layer_array([_encoder_layer(layer, pointees) for layer in encoder.layers])
        self.struct = Transformer(
            n_layers=len(layers),
            width=encoder.width,
            heads=self.heads,
            layers=ctypes.addressof(layers),
            final_norm=_layer_norm(encoder.final_norm, pointees),
        )
        self.pointees = layers, pointees
        hidden = _feed_forward_width(encoder.layers[0])
        attention = 3  # a pointer and a weight
        self.workspace_per_word = attention + 5 * encoder.width + hidden + max(hidden, encoder.width) // 4 + 4

    def __call__(
        self, embedded: Float[Tensor, "batch key width"], keep: Bool[Tensor, "batch key"], hooks: Hooks
    ) -> EncoderOutput:
        library, encoder = not_none(kernels.library()), self.encoder
        words = encoder.positions(embedded * math.sqrt(encoder.width))[keep]
        if not kernels.admits((len(words), encoder.width), words):
            raise ShapeError(f"the engine needs embeddings in float32 on the CPU, got {words.dtype}")
        offsets = nn.functional.pad(keep.sum(dim=1).cumsum(0), (1, 0))
        (sentences, length), workspace = keep.shape, words.new_empty(len(words) * self.workspace_per_word)
        weights = None
        if any(hooks.detail_at(site) is not Detail.NONE for site in self.sites):
            weights = words.new_zeros(len(self.sites), sentences, length, self.heads, length)
        output = torch.empty_like(words)
        library.heed_transformer_encoder(
            ctypes.addressof(self.struct), words.data_ptr(), offsets.data_ptr(), sentences,
            None if weights is None else weights.data_ptr(), length, output.data_ptr(), workspace.data_ptr(),
        )  # fmt: skip
        states = words.new_zeros(sentences, length, encoder.width)
        states[keep] = output
        attentions = {
            site: AttentionOutput(weights=None if weights is None else weights[depth])
            for depth, site in enumerate(self.sites)
        }
        return EncoderOutput(states, states, keep, attentions=attentions)


class CDecoder:
    """A decoder as a C struct."""

    @torch.no_grad()
    def __init__(self, decoder: TransformerDecoder, positions: Float[Tensor, "position width"]) -> None:
        assert isinstance(decoder.final_norm, nn.LayerNorm)
        assert isinstance(decoder.output, Output)
        pointees: Pointees = []
        embedding = (decoder.embedding.weight * math.sqrt(decoder.width)).contiguous()
        layers = _layer_array([_decoder_layer(layer, pointees) for layer in decoder.layers])
        self.struct = Transformer(
            n_layers=len(layers),
            width=decoder.width,
            heads=decoder.layers[0].cross_attention.site.heads,
            vocabulary=len(embedding),
            embedding=embedding.data_ptr(),
            positions=positions.data_ptr(),
            layers=ctypes.addressof(layers),
            final_norm=_layer_norm(decoder.final_norm, pointees),
            output=_int8_matrix([decoder.output.weight], [decoder.output.bias], pointees),
        )
        self.address = ctypes.addressof(self.struct)
        self.pointees = embedding, positions, layers, pointees
        hidden = _feed_forward_width(decoder.layers[0])
        self.workspace_per_row = 6 * decoder.width + hidden + len(embedding) + max(hidden, decoder.width) // 4 + 4

    def workspace(self, rows: int, steps: int, n_keys: int) -> Tensor:
        """Return the memory that a step of this many rows needs if it is at most the last of `steps`."""
        pointers, weights = 2 * max(n_keys, steps), steps  # in floats
        return torch.empty(rows * (pointers + weights + self.workspace_per_row))

    def check_memory(self, keys: Sequence[Tensor], values: Sequence[Tensor], keep: Tensor) -> None:
        """Raise ShapeError unless the source's keys and values of all layers may be given to a step in C."""
        heads = self.struct.heads
        shape = (*keep.shape, heads, self.struct.width // heads)
        if not (kernels.admits(shape, *keys, *values) and kernels.admits_mask(tuple(keep.shape), keep)):
            raise ShapeError(f"the engine needs a memory in float32 on the CPU, got {keys[0].dtype}")


def _layer_array(layers: Sequence[TransformerLayer]) -> ctypes.Array[TransformerLayer]:
    return (TransformerLayer * len(layers))(*layers)


def _encoder_layer(layer: EncoderLayer, pointees: Pointees) -> TransformerLayer:
    heads = not_none(layer.self_attention.heads)
    projections = heads.to_query, heads.to_key, heads.to_value
    struct = TransformerLayer(
        self_norm=_layer_norm(layer.self_residual.norm, pointees),
        feed_forward_norm=_layer_norm(layer.feed_forward_residual.norm, pointees),
        qkv=_int8_matrix([p.weight for p in projections], [p.bias for p in projections], pointees),
    )
    first, last = layer.feed_forward[0], layer.feed_forward[-1]
    _set_linears(struct, {"self_out": heads.out, "feed_forward_in": first, "feed_forward_out": last}, pointees)
    return struct


def _decoder_layer(layer: DecoderLayer, pointees: Pointees) -> TransformerLayer:
    heads = not_none(layer.cross_attention.heads)
    struct = _encoder_layer(layer, pointees)
    struct.cross_norm = _layer_norm(layer.cross_residual.norm, pointees)
    _set_linears(struct, {"cross_query": heads.to_query, "cross_out": heads.out}, pointees)
    return struct


def _set_linears(struct: TransformerLayer, linears: Mapping[str, nn.Module], pointees: Pointees) -> None:
    for name, linear in linears.items():
        assert isinstance(linear, nn.Linear)
        setattr(struct, name, _int8_matrix([linear.weight], [linear.bias], pointees))


def _int8_matrix(weights: Sequence[Tensor], biases: Sequence[Tensor | None], pointees: Pointees) -> Int8Matrix:
    """Concatenate matrices by rows and quantize the result."""
    bias = None if any(b is None for b in biases) else torch.cat([b for b in biases if b is not None])
    product = Int8Product(torch.cat(list(weights)), bias)
    pointees.append(product)
    return not_none(product.matrix)


def _layer_norm(norm: nn.LayerNorm, pointees: Pointees) -> LayerNorm:
    pointees.append(norm)
    return LayerNorm(norm.weight.data_ptr(), norm.bias.data_ptr(), norm.eps)


def _feed_forward_width(layer: EncoderLayer) -> int:
    return len(layer.feed_forward[0].get_parameter("weight"))

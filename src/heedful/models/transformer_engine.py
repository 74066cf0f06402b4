"""A Transformer decoder's whole step as one call into C, with its matrices in bytes.

What rows have written lies in one cache that is never reordered: when beams part, each row only notes where
its past was written.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor, nn

from heedful import native
from heedful.attention import PLAIN, Detail, Look, Watch
from heedful.data.batch import Regions, TextBatch
from heedful.data.tokenizer import END, PAD, START
from heedful.errors import ShapeError
from heedful.layers.readout import Output
from heedful.layers.state import Read, State
from heedful.layers.transformer import DecoderLayer, TransformerDecoder, TransformerEncoder
from heedful.layers.transformer import Layer as Reading
from heedful.models.engine import Alone, Engine, sentences
from heedful.models.seq2seq import Seq2Seq
from heedful.models.writer import Next
from heedful.native import Int8
from heedful.native.loader import Layer, Matrix, Norm, Transformer

LONGEST = 4_096  # tokens of an output
ALONE = 1_000  # tokens for which a single sentence's room is laid out beforehand
STEPS = 32  # the cache's length at first; it doubles when it is full


@dataclass(frozen=True, slots=True)
class Cached(State):
    """Where a generation stands. States of one generation share a cache: only the newest can go on."""

    written: Tensor = field(default_factory=lambda: torch.empty(0))  # (layer, step, row, key and value)
    origin: Tensor = field(default_factory=lambda: torch.empty(0))  # (row, step): its row in the cache
    sentence: Tensor = field(default_factory=lambda: torch.empty(0))  # (row,): whose source it reads

    def select(self, rows: Tensor, sentences: Tensor | None = None, beam: int = 1) -> Cached:
        del sentences, beam
        return replace(self, origin=self.origin[rows], sentence=self.sentence[rows])


class _Source(NamedTuple):
    """What the layers read, as C sees it: a list of places a layer, and what lies there."""

    keys: ctypes.Array[ctypes.c_void_p]
    values: ctypes.Array[ctypes.c_void_p]
    keep: Tensor
    held: list[Tensor]


class _Reader:
    """A pre-norm encoder as one call: sentences lie one after another, without padding."""

    def __init__(self, encoder: TransformerEncoder) -> None:
        held: list[object] = []
        layers = (Layer * len(encoder.layers))(*(_own_parts(layer, held) for layer in encoder.layers))
        self.encoder, self.names = encoder, [layer.self_site for layer in encoder.layers]
        self.heads = encoder.layers[0].self_attention.site.heads
        self.struct = Transformer(len(layers), encoder.width, self.heads, 0)
        self.struct.layer = ctypes.addressof(layers)
        assert isinstance(encoder.last_norm, nn.LayerNorm)
        self.struct.last = _norm(encoder.last_norm, held)
        inner = len(encoder.layers[0].feed_forward[0].get_parameter("weight"))
        self.floats = 5 * encoder.width + inner + max(inner, encoder.width) // 4 + 4
        self.held = (layers, held)

    def __call__(self, words: Tensor, keep: Tensor, watch: Watch) -> Read:
        library, encoder = native.library(), self.encoder
        assert library is not None
        x = encoder.positions(words * math.sqrt(encoder.width))[keep]
        lengths = keep.sum(dim=1)
        begins = nn.functional.pad(lengths.cumsum(0), (1, 0))
        (count, widest), room = keep.shape, x.new_empty(len(x) * self.floats)
        asked = [name for name in self.names if watch.detail_at(name) is not Detail.NONE]
        weights = x.new_zeros(len(self.names), count, widest, self.heads, widest) if asked else None
        out = torch.empty_like(x)
        library.heed_reader(
            ctypes.addressof(self.struct), x.data_ptr(), begins.data_ptr(), count,
            None if weights is None else weights.data_ptr(), widest, out.data_ptr(), room.data_ptr(),
        )  # fmt: skip
        states = x.new_zeros(count, widest, encoder.width)
        states[keep] = out
        looks = {name: Look(None if weights is None else weights[at]) for at, name in enumerate(self.names)}
        return Read(states, states, keep, looks=looks)


def _reader(encoder: nn.Module) -> _Reader | None:
    """The quick way to read, for encoders that it knows."""
    if not isinstance(encoder, TransformerEncoder) or not isinstance(encoder.into, nn.Identity):
        return None
    return _Reader(encoder) if all(layer.around_self.pre for layer in encoder.layers) else None


class TransformerEngine(Engine):
    """Knows pre-norm decoders, and pre-norm encoders."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__(model)
        self.reader = _reader(model.encoder)
        decoder = model.decoder
        assert isinstance(decoder, TransformerDecoder)
        self.decoder, self.held = _struct(decoder)
        self.names = [layer.cross_site for layer in decoder.layers]
        self.own_names = [layer.self_site for layer in decoder.layers]
        self.count, self.heads = len(decoder.layers), decoder.layers[0].cross_attention.site.heads
        inner = len(decoder.layers[0].feed_forward[0].get_parameter("weight"))
        self.floats = 6 * decoder.width + inner + self.decoder.vocabulary + max(inner, decoder.width) // 4 + 4
        self.table = decoder.positions.first(LONGEST)
        self.decoder.positions = self.table.data_ptr()

    def encode(self, batch: TextBatch, watch: Watch = PLAIN) -> tuple[State, Mapping[str, Look]]:
        known = self._knows(watch) and native.library() is not None
        if self.reader is None or not known or isinstance(batch.source, Regions):
            return super().encode(batch, watch)
        with torch.no_grad():
            read = self.reader(self.model.embedding(batch.source.ids), self.model.readable(batch), watch)
            return self.model.decoder.begin(read), read.looks

    def next(self, state: State, last: Int[Tensor, "row"], best: int, watch: Watch = PLAIN) -> Next | None:
        library = native.library()
        if library is None or not self._knows(watch):
            return None
        now = state if isinstance(state, Cached) else self._begin(state, len(last))
        t, rows, best = now.at, len(last), min(best, self.decoder.vocabulary)
        written, origin = now.written, now.origin
        if t == written.shape[1]:
            written = torch.cat([written, torch.empty_like(written)], dim=1)
            origin = torch.cat([origin, torch.empty_like(origin)], dim=1)
        if t >= len(self.table):
            raise ShapeError(f"an output longer than {len(self.table):,} tokens has no positions left")
        source, last, origin = self._source(now), last.contiguous(), origin.contiguous()
        count = source.keep.shape[1]
        weights = written.new_empty(self.count, rows, self.heads, count)
        own = self._own(watch, self.count * rows * self.heads * (t + 1))
        words, logp = last.new_empty(rows, best), written.new_empty(rows, best)
        room = written.new_empty(rows * self.floats)
        library.heed_transformer(
            ctypes.addressof(self.decoder), t, last.data_ptr(), written.data_ptr(), written.shape[2],
            written.shape[1], origin.data_ptr(), source.keys, source.values, source.keep.data_ptr(), count,
            now.sentence.data_ptr(), weights.data_ptr(),
            None if own is None else own.data_ptr(), rows, best, words.data_ptr(), logp.data_ptr(),
            room.data_ptr(), PAD, START,
        )  # fmt: skip
        origin[:, t] = torch.arange(rows)
        after = replace(now, at=t + 1, written=written, origin=origin)
        given = dict(zip(self.names, weights, strict=True))
        if own is not None:
            given |= zip(self.own_names, own.view(self.count, rows, self.heads, t + 1), strict=True)
        shown = [name for name in given if watch.detail_at(name) is not Detail.NONE]
        looks = {name: Look(given[name][:, None]) for name in shown}
        return Next(words, logp, after, looks)

    def alone(self, state: State, most: int, watch: Watch = PLAIN) -> Alone | None:
        library = native.library()
        if library is None or not self._knows(watch) or most > ALONE:
            return None
        source = self._source(state)
        count, asked = source.keep.shape[1], watch.detail is not Detail.NONE
        wide = self.count * self.heads * count
        weights = torch.empty(most if asked else 1, self.count, self.heads, count)
        cache = torch.empty(self.count * most * 2 * self.decoder.width)
        origin = torch.zeros(most, dtype=torch.long)
        own = self._own(watch, self.count * self.heads * most * (most + 1) // 2)
        words, logp = torch.empty(most, dtype=torch.long), torch.empty(most)
        room = torch.empty(self.floats)
        steps = library.heed_transformer_alone(
            ctypes.addressof(self.decoder), self.first, END, most, cache.data_ptr(), origin.data_ptr(),
            source.keys, source.values, source.keep.data_ptr(), count, weights.data_ptr(),
            wide if asked else 0,
            None if own is None else own.data_ptr(), words.data_ptr(), logp.data_ptr(),
            room.data_ptr(), PAD, START,
        )  # fmt: skip
        given = {name: weights[:steps, at] for at, name in enumerate(self.names)}
        if own is not None:
            given |= zip(self.own_names, self._square(own, steps), strict=True)
        looks = {name: found for name, found in given.items() if watch.detail_at(name) is not Detail.NONE}
        return Alone(words[:steps].tolist(), logp[:steps].tolist(), looks)

    def _knows(self, watch: Watch) -> bool:
        """It shows weights, but no scores."""
        return watch.edit is None and watch.detail is not Detail.FULL

    def _own(self, watch: Watch, floats: int) -> Tensor | None:
        """Room for the looks at what was written, where they are asked for."""
        asked = any(watch.detail_at(name) is not Detail.NONE for name in self.own_names)
        return torch.empty(floats) if asked else None

    def _square(self, own: Tensor, steps: int) -> Tensor:
        """Rows that grow with the steps as (layer, step, head, step)."""
        square = own.new_zeros(self.count, steps, self.heads, steps)
        at = 0
        for t in range(steps):
            wide = self.count * self.heads * (t + 1)
            square[:, t, :, : t + 1] = own[at : at + wide].view(self.count, self.heads, t + 1)
            at += wide
        return square

    def _source(self, state: State) -> _Source:
        memories = [state.memory[name] for name in self.names]
        keys = [memory.keys.contiguous() for memory in memories]
        values = [memory.values.contiguous() for memory in memories]
        places = ctypes.c_void_p * self.count
        key_places, value_places = (places(*(t.data_ptr() for t in given)) for given in (keys, values))
        return _Source(key_places, value_places, memories[0].keep.contiguous(), [*keys, *values])

    def _begin(self, state: State, rows: int) -> Cached:
        written = torch.empty(self.count, STEPS, rows, 2 * self.decoder.width)
        origin = torch.zeros(rows, STEPS, dtype=torch.long)
        sentence = sentences(rows, len(state.memory[self.names[0]].keep))
        return Cached(state.memory, at=state.at, written=written, origin=origin, sentence=sentence)


def knows(model: Seq2Seq) -> bool:
    decoder = model.decoder
    if not isinstance(decoder, TransformerDecoder) or model.copying is not None:
        return False
    plain = isinstance(decoder.into, nn.Identity) and isinstance(decoder.out, nn.Identity)
    return plain and all(layer.around_self.pre for layer in decoder.layers)


@torch.no_grad()
def _struct(decoder: TransformerDecoder) -> tuple[Transformer, tuple[object, ...]]:
    """The decoder as C sees it, and what must live as long."""
    held: list[object] = []
    vectors = (decoder.embedding.weight * math.sqrt(decoder.width)).contiguous()
    layers = (Layer * len(decoder.layers))(*(_layer(layer, held) for layer in decoder.layers))
    heads = decoder.layers[0].cross_attention.site.heads
    struct = Transformer(len(layers), decoder.width, heads, len(vectors))
    struct.vectors, struct.layer = vectors.data_ptr(), ctypes.addressof(layers)
    assert isinstance(decoder.last_norm, nn.LayerNorm)
    assert isinstance(decoder.output, Output)
    struct.last = _norm(decoder.last_norm, held)
    struct.output = _matrix([decoder.output.weight], [decoder.output.bias], held)
    return struct, (vectors, layers, held)


def _layer(layer: DecoderLayer, held: list[object]) -> Layer:
    cross = layer.cross_attention.heads
    assert cross is not None
    found = _own_parts(layer, held)
    found.cross_norm = _norm(layer.around_cross.norm, held)
    _linears(found, {"cross_query": cross.to_query, "cross_out": cross.out}, held)
    return found


def _own_parts(layer: Reading, held: list[object]) -> Layer:
    """What encoder and decoder layers share: self-attention and the feed-forward part."""
    own = layer.self_attention.heads
    assert own is not None
    three = [own.to_query, own.to_key, own.to_value]
    found = Layer()
    found.self_norm, found.feed_norm = (_norm(p.norm, held) for p in (layer.around_self, layer.around_feed))
    found.qkv = _matrix([p.weight for p in three], [p.bias for p in three], held)
    first, last = layer.feed_forward[0], layer.feed_forward[-1]
    _linears(found, {"self_out": own.out, "feed_in": first, "feed_out": last}, held)
    return found


def _linears(found: Layer, linears: Mapping[str, nn.Module], held: list[object]) -> None:
    for name, linear in linears.items():
        assert isinstance(linear, nn.Linear)
        setattr(found, name, _matrix([linear.weight], [linear.bias], held))


def _matrix(weights: Sequence[Tensor], biases: Sequence[Tensor | None], held: list[object]) -> Matrix:
    bias = None if any(b is None for b in biases) else torch.cat([b for b in biases if b is not None])
    product = Int8(torch.cat(list(weights)), bias)
    held.append(product)
    assert product.matrix is not None
    return product.matrix


def _norm(norm: nn.LayerNorm, held: list[object]) -> Norm:
    held.append(norm)
    return Norm(norm.weight.data_ptr(), norm.bias.data_ptr(), norm.eps)

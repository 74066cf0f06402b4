"""A GRU encoder-decoder with additive attention in NumPy and float32, for one sentence at a time.

It computes what `models/seq2seq.py` computes with `layers/recurrent.py`, `layers/recurrent_decoder.py`,
`layers/readout.py` and `layers/state_init.py`; `tests/numpy_backend` compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.config import ModelConfig
from heedful.data.tokenizer import END, PAD, START

Array = npt.NDArray[np.float32]
Shapes = dict[str, tuple[int, ...]]
SITE = "cross"  # the name of the decoder's attention
TARGET, SOURCE, OUTPUT = "decoder.embedding.weight", "embedding.weight", "decoder.read_out.output.weight"
READ_OUTS = ("linear", "affine", "tanh", "deep")
ORDERS = ("update-attend-generate", "attend-update-generate", "conditional")


class Source(NamedTuple):
    """An encoded sentence: what attention compares, and what it reads."""

    keys: Array  # (key, attention hidden)
    values: Array  # (key, width)


class State(NamedTuple):
    """The decoder's state and feed, of each hypothesis."""

    hidden: Array  # (row, hidden)
    feed: Array | None  # (row, feed): the context or attentional vector of the step before

    def select(self, rows: npt.NDArray[np.int64]) -> State:
        """Return the state of the given rows, in that order."""
        return State(self.hidden[rows], None if self.feed is None else self.feed[rows])


class NextTokens(NamedTuple):
    """The log-probabilities of the next tokens, the attention weights and the state after a step."""

    logp: Array  # (row, vocabulary)
    weights: Array  # (row, key)
    state: State


def supports(config: ModelConfig) -> bool:
    """Return whether a model is a GRU encoder with a one-layer GRU decoder and plain additive attention."""
    encoder, decoder, attention = config.encoder, config.decoder, config.attention
    plain_encoder = encoder.kind == "gru" and not (encoder.residual or encoder.layer_norm) and encoder.read_end
    plain_decoder = (
        (decoder.kind, decoder.layers, decoder.source) == ("gru", 1, "attention")
        and not (decoder.layer_norm or decoder.residual or decoder.combine or decoder.gate)
        and decoder.step_order in ORDERS
        and decoder.read_out in READ_OUTS
        and (decoder.state_init != "backward" or encoder.bidirectional)
    )
    plain_attention = (
        (attention.score, attention.normalizer, attention.placement) == ("additive", "softmax", "global")
        and attention.heads == 0
        and not attention.coverage
        and attention.read_end
    )
    others = (config.classifier, config.recommender, config.language_model)
    return plain_encoder and plain_decoder and plain_attention and not config.copying and others == (None,) * 3


def weight_shapes(config: ModelConfig, source_size: int, target_size: int) -> Shapes:
    """Return the shape of every weight of a supported model, by its name in a model folder.

    Tied embeddings are listed once, under the first of their names.
    """
    decoder, hidden, word = config.decoder, config.decoder.hidden, config.embedding
    context, width = config.encoder_width, _feature_width(config)
    shapes: Shapes = {TARGET: (target_size, word)}
    if config.tie_embeddings != "all":
        shapes[SOURCE] = (source_size, word)
    if config.tie_embeddings == "none" or decoder.read_out == "linear":
        shapes[OUTPUT] = (target_size, width)
    shapes["decoder.read_out.output.bias"] = (target_size,)
    for layer in range(config.encoder.layers):
        inputs = context if layer else word
        for direction in _directions(config):
            shapes |= _gru_shapes(f"encoder.layers.{layer}.", direction, inputs, config.encoder.hidden)
    shapes |= _gru_shapes("decoder.rnn.layers.0.", "", word + _feed_width(config), hidden)
    if decoder.step_order == "conditional":
        shapes |= _gru_shapes("decoder.second_gru.", "", context, hidden)
    score = "decoder.attention.score."
    shapes[f"{score}query.weight"] = (config.attention.hidden, hidden)
    shapes[f"{score}key.weight"] = (config.attention.hidden, context)
    shapes[f"{score}v"] = (config.attention.hidden,)
    if config.attention.bias:
        shapes[f"{score}key.bias"] = (config.attention.hidden,)
    if decoder.read_out != "linear":
        joined = hidden + context + (word if decoder.read_out == "deep" else 0)
        shapes["decoder.read_out.projection.weight"] = (width, joined)
        if decoder.read_out != "tanh":
            shapes["decoder.read_out.projection.bias"] = (width,)
    final = config.encoder.hidden if decoder.state_init == "backward" else context
    if decoder.state_init != "zeros" and not (decoder.state_init in ("bridge", "top") and final == hidden):
        shapes["decoder.state_init.projections.0.weight"] = (hidden, final)
        shapes["decoder.state_init.projections.0.bias"] = (hidden,)
    return shapes


def aliases(config: ModelConfig, name: str) -> tuple[str, ...]:
    """Return the names that a weight may have in a file: safetensors stores tied embeddings under one of them."""
    if name != TARGET or config.tie_embeddings == "none":
        return (name,)
    output = () if config.decoder.read_out == "linear" else (OUTPUT,)
    return (TARGET, *output, *((SOURCE,) if config.tie_embeddings == "all" else ()))


def _gru_shapes(prefix: str, direction: str, inputs: int, hidden: int) -> Shapes:
    return {
        f"{prefix}weight_ih_l0{direction}": (3 * hidden, inputs),
        f"{prefix}weight_hh_l0{direction}": (3 * hidden, hidden),
        f"{prefix}bias_ih_l0{direction}": (3 * hidden,),
        f"{prefix}bias_hh_l0{direction}": (3 * hidden,),
    }


def _directions(config: ModelConfig) -> tuple[str, ...]:
    return ("", "_reverse") if config.encoder.bidirectional else ("",)


def _feature_width(config: ModelConfig) -> int:
    """Return the width of what the output layer reads."""
    decoder = config.decoder
    if decoder.read_out == "linear":
        return decoder.hidden + config.encoder_width
    return config.embedding if config.tie_embeddings != "none" else decoder.hidden


def _feed_width(config: ModelConfig) -> int:
    """Return the width of the part of the decoder's input besides the word."""
    decoder = config.decoder
    if decoder.step_order == "attend-update-generate":
        return config.encoder_width
    if decoder.step_order == "conditional" or decoder.input_feeding == "none":
        return 0
    return config.encoder_width if decoder.input_feeding == "context" else _feature_width(config)


class Gru(NamedTuple):
    """The weights of one layer in one direction."""

    inputs: Array  # (3 hidden, input)
    hidden: Array  # (3 hidden, hidden)
    input_bias: Array
    hidden_bias: Array

    def gates(self, x: Array) -> Array:
        """Return the part of the gates that depends on the input alone."""
        return x @ self.inputs[:, : x.shape[-1]].T + self.input_bias

    def cell(self, gates: Array, h: Array) -> Array:
        """Return the next state (Cho 2014)."""
        n = h.shape[-1]
        recurrent = h @ self.hidden.T + self.hidden_bias
        reset, update = np.split(_sigmoid(gates[..., : 2 * n] + recurrent[..., : 2 * n]), 2, axis=-1)
        candidate = np.tanh(gates[..., 2 * n :] + reset * recurrent[..., 2 * n :])
        new: Array = candidate + update * (h - candidate)
        return new

    def run(self, x: Array, reverse: bool) -> Array:
        """Return the state at every word."""
        gates, out = self.gates(x), np.empty((len(x), self.hidden.shape[1]), np.float32)
        h = np.zeros(self.hidden.shape[1], np.float32)
        for t in reversed(range(len(x))) if reverse else range(len(x)):
            out[t] = h = self.cell(gates[t], h)
        return out


class NumpyGru:
    """A model that `supports` accepts, with weights of the shapes of `weight_shapes`."""

    def __init__(self, config: ModelConfig, weights: Mapping[str, Array]) -> None:
        self.config, self.weights = config, weights
        self.start_token = END if config.decoder.start_token == "</s>" else START
        self.target = weights[TARGET]
        self.source = weights.get(SOURCE, self.target)
        self.output = weights.get(OUTPUT, self.target)
        self.encoder = [
            [self._gru(f"encoder.layers.{layer}.", direction) for direction in _directions(config)]
            for layer in range(config.encoder.layers)
        ]
        self.rnn = self._gru("decoder.rnn.layers.0.", "")
        self.feed_weight = self.rnn.inputs[:, config.embedding :]
        self.second_gru = self._gru("decoder.second_gru.", "") if config.decoder.step_order == "conditional" else None

    def _gru(self, prefix: str, direction: str) -> Gru:
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        return Gru(*(self.weights[f"{prefix}{name}{direction}"] for name in names))

    def encode(self, ids: Sequence[int]) -> tuple[Source, State]:
        """Encode a sentence; return what attention reads and the state before the first token, one row."""
        x, finals = self.source[list(ids)], []
        for layer in self.encoder:
            states = [gru.run(x, bool(direction)) for direction, gru in enumerate(layer)]
            finals.append([out[0 if direction else -1] for direction, out in enumerate(states)])
            x = np.concatenate(states, axis=-1)
        score = "decoder.attention.score."
        keys = x @ self.weights[f"{score}key.weight"].T + self.weights.get(f"{score}key.bias", np.float32(0))
        source, hidden = Source(keys, x), self._initial_hidden(x, finals)[None]
        return source, State(hidden, self._initial_feed(source, hidden))

    def _initial_hidden(self, values: Array, finals: list[list[Array]]) -> Array:
        """Return `s_0`; `finals` are the final states of each layer and direction."""
        method = self.config.decoder.state_init
        if method == "zeros":
            return np.zeros(self.config.decoder.hidden, np.float32)
        first: Array
        if method == "mean":
            first = values.mean(axis=0)
        elif method == "backward":
            first = finals[-1][1]
        else:
            first = np.concatenate(finals[-1 if method == "top" else 0])
        weight = self.weights.get("decoder.state_init.projections.0.weight")
        if weight is None:
            return first
        projected: Array = np.tanh(weight @ first + self.weights["decoder.state_init.projections.0.bias"])
        return projected

    def _initial_feed(self, source: Source, hidden: Array) -> Array | None:
        """Return the feed of the first step; None if the decoder has none."""
        decoder = self.config.decoder
        if decoder.step_order != "update-attend-generate" or decoder.input_feeding == "none":
            return None
        if decoder.input_feeding == "context" and decoder.input_feeding_init == "attend":
            return self._attend(hidden, source)[0]
        return np.zeros((1, _feed_width(self.config)), np.float32)

    def _attend(self, query: Array, source: Source) -> tuple[Array, Array]:
        """Return the context and the weights of each row (Bahdanau 2015, appendix A.1.2)."""
        score = "decoder.attention.score."
        projected = query @ self.weights[f"{score}query.weight"].T
        scores = np.tanh(projected[:, None] + source.keys) @ self.weights[f"{score}v"]
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        return weights @ source.values, weights

    def step(self, source: Source, state: State, last: Sequence[int]) -> NextTokens:
        """Feed the last token of each row."""
        words, (h, feed) = self.target[list(last)], state
        gates = self.rnn.gates(words)
        if self.config.decoder.step_order == "attend-update-generate":
            context, weights = self._attend(h, source)
            h = self.rnn.cell(gates + context @ self.feed_weight.T, h)
        else:
            h = self.rnn.cell(gates if feed is None else gates + feed @ self.feed_weight.T, h)
            context, weights = self._attend(h, source)
        if self.second_gru is not None:
            h = self.second_gru.cell(self.second_gru.gates(context), h)
        features = self._read_out(h, context, words)
        if feed is not None:
            feed = context if self.config.decoder.input_feeding == "context" else features
        logits = features @ self.output.T + self.weights["decoder.read_out.output.bias"]
        logits[:, [PAD, START]] = -np.inf  # never generated
        return NextTokens(_log_softmax(logits), weights, State(h, feed))

    def _read_out(self, h: Array, context: Array, words: Array) -> Array:
        kind = self.config.decoder.read_out
        joined = np.concatenate([h, context, words] if kind == "deep" else [h, context], axis=-1)
        if kind == "linear":
            return joined
        projected = joined @ self.weights["decoder.read_out.projection.weight"].T
        projected += self.weights.get("decoder.read_out.projection.bias", np.float32(0))
        return projected if kind == "affine" else np.tanh(projected)


def _sigmoid(x: Array) -> Array:
    y: Array = 0.5 + 0.5 * np.tanh(0.5 * x)  # without overflow
    return y


def _log_softmax(x: Array) -> Array:
    shifted = x - x.max(axis=-1, keepdims=True)
    result: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result

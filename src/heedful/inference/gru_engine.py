"""The inference engine for GRU decoders: a step is one call into C, with int8 matrices.

The input gates of every word of the vocabulary are precomputed, so that a step only looks them up.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor, nn

from heedful import kernels
from heedful.attention import NO_HOOKS, Additive, AttentionOutput, Detail, Hooks
from heedful.attention.dispatch import is_plain_additive
from heedful.data.tokenizer import END, PAD, START
from heedful.inference.engine import STEPS_PER_CALL, Engine, records_weights_only, sentence_of_rows, workspace
from heedful.kernels import Int8Product
from heedful.kernels.structs import RnnDecoder
from heedful.layers.readout import Output
from heedful.layers.recurrent_decoder import CROSS, RecurrentDecoder
from heedful.layers.state import State
from heedful.models.autoregressive import GreedyOutput, NextTokens, ShouldStop, never_stop
from heedful.models.seq2seq import Seq2Seq
from heedful.optional import not_none

# in the order of the enums in kernels/csrc/rnn_decoder.c
MODES = ("attend-first", "feed-context", "feed-attentional", "conditional", "feed-nothing")
READ_OUTS = ("linear", "affine", "tanh", "deep")


class _Source(NamedTuple):
    """The memory of all sentences, contiguous and checked."""

    keys: Tensor
    values: Tensor
    keep: Tensor


@dataclass(frozen=True, slots=True)
class GruState(State):
    """The decoder state; the memories of all sentences are kept, and `sentence` is the one each row attends to.

    The engine makes it in the first step, when it has checked the memory.
    """

    sentence: Tensor = field(default_factory=lambda: torch.empty(0))  # (row,): index of its memory
    source: _Source | None = None

    def select(self, rows: Tensor, sentences: Tensor | None = None, beam: int = 1) -> GruState:
        del sentences, beam
        return GruState(
            self.memory,
            hidden=tuple(h[rows] for h in self.hidden),
            input_feed=None if self.input_feed is None else self.input_feed[rows],
            position=self.position,
            sentence=self.sentence[rows],
            source=self.source,
        )


def supports(model: Seq2Seq) -> bool:
    """Return whether the engine can run a model: a one-layer GRU decoder with plain additive attention."""
    decoder = model.decoder
    if not isinstance(decoder, RecurrentDecoder) or decoder.attention is None or model.copying is not None:
        return False
    if not kernels.accepts(*decoder.parameters()):
        return False
    rnn, config = decoder.rnn, decoder.config
    one_gru = (rnn.kind, len(rnn.layers), len(rnn.norms)) == ("gru", 1, 0) and not (config.combine or config.gate)
    return (
        one_gru
        and is_plain_additive(decoder.attention)
        and decoder.read_out.kind in READ_OUTS
        and decoder.step_mode in MODES
    )


class GruEngine(Engine):
    """The engine of models that `supports` accepts."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__(model)
        assert supports(model), "the engine does not support this decoder"
        self.decoder = _CDecoder(model)

    def top_next_tokens(
        self, state: State, last: Int[Tensor, "row"], count: int, hooks: Hooks = NO_HOOKS
    ) -> NextTokens:
        library = kernels.library()
        if library is None or not records_weights_only(hooks):
            return super().top_next_tokens(state, last, count, hooks)
        rows, k = len(last), min(count, self.decoder.struct.vocabulary)
        (h, feed), source = _mutable_state(state), self._source(state)
        if source is None or not self.decoder.admits_state(rows, h, feed):
            return super().top_next_tokens(state, last, count, hooks)
        keys, values, keep = source
        sentence, last = self._sentence(state, rows, len(keep)), last.contiguous()
        kernels.check_indices(last, (rows,), self.decoder.struct.vocabulary, "token")
        weights = h.new_empty(rows, 1, 1, keep.shape[1])
        tokens, logp = last.new_empty(rows, k), h.new_empty(rows, k)
        memory = workspace(rows * self.decoder.workspace_per_row)
        library.heed_rnn_decoder_step(
            self.decoder.address, last.data_ptr(), h.data_ptr(), feed.data_ptr(),
            keys.data_ptr(), values.data_ptr(), keep.data_ptr(), keep.shape[1], sentence.data_ptr(),
            weights.data_ptr(), rows, k, tokens.data_ptr(), logp.data_ptr(), memory.data_ptr(), PAD, START,
        )  # fmt: skip
        feed_after = feed if self.decoder.feeds else state.input_feed
        after = GruState(
            state.memory,
            hidden=(h,),
            input_feed=feed_after,
            position=state.position + 1,
            sentence=sentence,
            source=source,
        )
        record = hooks.detail_at(CROSS) is not Detail.NONE
        return NextTokens(tokens, logp, after, {CROSS: AttentionOutput(weights=weights if record else None)})

    def generate_greedy(
        self, state: State, max_length: int, hooks: Hooks = NO_HOOKS, should_stop: ShouldStop = never_stop
    ) -> GreedyOutput | None:
        library = kernels.library()
        (h, feed), source = _mutable_state(state), self._source(state)
        if library is None or source is None or not records_weights_only(hooks):
            return None
        keys, values, keep = source
        if len(keep) != 1 or not self.decoder.admits_state(1, h, feed):
            return None
        n_keys, record = keep.shape[1], hooks.detail_at(CROSS) is not Detail.NONE
        memory = workspace(self.decoder.workspace_per_row)
        tokens, logp, weights = [self.start_token], list[float](), [h.new_empty(0, 1, n_keys)]
        while len(logp) < max_length and not (logp and tokens[-1] == END) and not should_stop():
            steps = min(STEPS_PER_CALL, max_length - len(logp))
            chunk_weights = h.new_empty(steps if record else 1, 1, n_keys)
            chunk_tokens, chunk_logp = torch.empty(steps, dtype=torch.long), h.new_empty(steps)
            steps = library.heed_rnn_decoder_greedy(
                self.decoder.address, tokens[-1], END, steps, h.data_ptr(), feed.data_ptr(), keys.data_ptr(),
                values.data_ptr(), keep.data_ptr(), n_keys, chunk_weights.data_ptr(), n_keys if record else 0,
                chunk_tokens.data_ptr(), chunk_logp.data_ptr(), memory.data_ptr(), PAD, START,
            )  # fmt: skip
            tokens += chunk_tokens[:steps].tolist()
            logp += chunk_logp[:steps].tolist()
            weights.append(chunk_weights[:steps])
        return GreedyOutput(tokens[1:], logp, {CROSS: torch.cat(weights)} if record else {})

    def _source(self, state: State) -> _Source | None:
        """Return the memory of a state; None if C cannot read it."""
        if isinstance(state, GruState) and state.source is not None:
            return state.source
        memory = state.memory[CROSS]
        source = _Source(memory.keys.contiguous(), memory.values.contiguous(), memory.keep.contiguous())
        return source if self.decoder.admits_source(source) else None

    def _sentence(self, state: State, rows: int, sentences: int) -> Tensor:
        """Return the sentence of each row."""
        if isinstance(state, GruState) and len(state.sentence) == rows:
            return state.sentence  # selected from checked ones
        sentence = sentence_of_rows(rows, sentences)
        kernels.check_indices(sentence, (rows,), sentences, "sentence")
        return sentence


def _mutable_state(state: State) -> tuple[Tensor, Tensor]:
    """Return copies of the hidden state and of the feed of the next step, for C to update in place."""
    h = state.hidden[0].clone(memory_format=torch.contiguous_format)
    feed = state.input_feed
    return h, h.new_empty(0) if feed is None else feed.clone(memory_format=torch.contiguous_format)


class _CDecoder:
    """A decoder as a C struct, and the tensors that it points to."""

    @torch.no_grad()
    def __init__(self, model: Seq2Seq) -> None:
        decoder = model.decoder
        assert isinstance(decoder, RecurrentDecoder)
        score, read_out, mode = not_none(decoder.attention).score, decoder.read_out, not_none(decoder.step_mode)
        assert isinstance(score, Additive)
        input_weight, _, input_bias, _ = decoder.rnn.layers[0].all_weights[0]
        embedding, v = decoder.embedding.weight.detach().contiguous(), score.v.detach().contiguous()
        vocabulary, word_width = embedding.shape
        input_gates = nn.functional.linear(embedding, input_weight[:, :word_width], input_bias).contiguous()
        matrices = _int8_matrices(decoder)
        hidden, context_width, feature_width = decoder.rnn.hidden_size, decoder.context_width, read_out.output.width
        self.struct = RnnDecoder(
            mode=MODES.index(mode),
            readout=READ_OUTS.index(read_out.kind),
            hidden=hidden,
            attention_hidden=len(v),
            context_width=context_width,
            feed_width=matrices["w_feed"].shape[1] if "w_feed" in matrices else 0,
            feature_width=feature_width,
            embedding_width=word_width,
            vocabulary=vocabulary,
            input_gates=input_gates.data_ptr(),
            embedding=embedding.data_ptr(),
            v=v.data_ptr(),
            **{name: matrix.matrix for name, matrix in matrices.items()},
        )
        self.address = ctypes.addressof(self.struct)
        self.memory_widths = len(v), context_width
        self.pointees = (input_gates, embedding, v, matrices)  # must live as long as the struct
        self.feeds = mode in ("feed-context", "feed-attentional")
        gates = 3 * 3 * hidden  # of the input, of the hidden state, and activated
        joined_width = hidden + context_width + word_width  # the input of the read-out
        int8_bytes = max(matrix.shape[1] for matrix in matrices.values())
        self.workspace_per_row = (  # in floats, in the order of heed_rnn_decoder_step
            gates + hidden + len(v) + context_width + joined_width + feature_width + vocabulary + int8_bytes // 4 + 4
        )

    def admits_state(self, rows: int, h: Tensor, feed: Tensor) -> bool:
        """Return whether a step in C may be given the state of these rows."""
        feed_fits = not self.feeds or kernels.admits((rows, self.struct.feed_width), feed)
        return feed_fits and kernels.admits((rows, self.struct.hidden), h)

    def admits_source(self, source: _Source) -> bool:
        """Return whether a step in C may be given the memory of all sentences."""
        (sentences, n_keys), (key_width, value_width) = source.keep.shape, self.memory_widths
        return (
            kernels.admits((sentences, n_keys, 1, key_width), source.keys)
            and kernels.admits((sentences, n_keys, 1, value_width), source.values)
            and kernels.admits_mask((sentences, n_keys), source.keep)
        )


def _int8_matrices(decoder: RecurrentDecoder) -> dict[str, Int8Product]:
    """Quantize the matrices of a decoder, named as the fields of the C struct."""
    score, read_out, output = not_none(decoder.attention).score, decoder.read_out, decoder.read_out.output
    assert isinstance(score, Additive)
    assert isinstance(output, Output)
    input_weight, hidden_weight, _, hidden_bias = decoder.rnn.layers[0].all_weights[0]
    matrices = {
        "w_hidden": Int8Product(hidden_weight, hidden_bias),
        "w_query": Int8Product(score.query.weight),
        "w_output": Int8Product(output.weight, output.bias),
    }
    if decoder.step_mode == "conditional":
        second_input, second_hidden, second_input_bias, second_hidden_bias = decoder.second_gru.all_weights[0]
        matrices["w_feed"] = Int8Product(second_input, second_input_bias)
        matrices["w_hidden2"] = Int8Product(second_hidden, second_hidden_bias)
    elif decoder.step_mode != "feed-nothing":
        matrices["w_feed"] = Int8Product(input_weight[:, decoder.embedding.embedding_dim :])
    if read_out.kind != "linear":
        matrices["w_readout"] = Int8Product(read_out.projection.weight, read_out.projection.bias)
    return matrices

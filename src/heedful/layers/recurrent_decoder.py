"""The recurrent decoder, with attention in one of four step orders, or without attention."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful import kernels
from heedful.attention import (
    EMPTY,
    Additive,
    Attention,
    AttentionOutput,
    Carry,
    Detail,
    Dot,
    General,
    Hooks,
    build_attention,
)
from heedful.config import ModelConfig
from heedful.fused.cells import CellWeights
from heedful.fused.decoder_steps import DecoderSpec, DecoderWeights, StepMode, fused_steps
from heedful.fused.decoder_steps import supports as fused_steps_support
from heedful.layers.decoder import Decoder
from heedful.layers.dropout import Dropout
from heedful.layers.readout import ReadOut
from heedful.layers.recurrent import RecurrentStack
from heedful.layers.state import DecoderOutput, EncoderOutput, State, attend_rows
from heedful.layers.state_init import StateInit
from heedful.optional import not_none
from heedful.trace.schema import Site

CROSS = "cross"
SUMMARY = "summary"  # key of `State.per_sentence`: the vector that represents the whole source (Cho 2014)

Words = Float[Tensor, "row query word"]


class _StepOutput(NamedTuple):
    """The states of the top layer, the contexts, the attention, and what the next step needs."""

    states: Float[Tensor, "row query hidden"]
    context: Float[Tensor, "row query context"]
    hidden: tuple[Tensor, ...]  # the new state of every layer
    attention: AttentionOutput
    carry: Carry


class RecurrentDecoder(Decoder):
    """A stack of RNNs that attends to the source in the order of `[model.decoder] step_order`.

    - `update-attend-generate` (Luong 2015): `s_t = RNN(y_{t-1}, s_{t-1})`, `c_t = attend(s_t)`;
    - `attend-update-generate` (Bahdanau 2015): `c_t = attend(s_{t-1})`, `s_t = RNN([y_{t-1}; c_t], s_{t-1})`;
    - `attend-generate-update` (Bahdanau's code): generate from `s_{t-1}` and `c_t`, then update with `y_t`;
    - `conditional` (Nematus): `s' = GRU_1(y_{t-1}, s_{t-1})`, `c_t = attend(s')`, `s_t = GRU_2(c_t, s')`.

    Without attention the decoder gets the source as its initial state (`source = "init"`, Sutskever 2014) or as one
    vector that enters every step (`source = "every-step"`, Cho 2014).
    """

    def __init__(self, config: ModelConfig, embedding: nn.Embedding, tied: bool) -> None:
        super().__init__()
        decoder = config.decoder
        self.config = decoder
        self.embedding = embedding
        self.dropout = Dropout(config.dropout)
        self.attention: Attention | None = None
        word_width, hidden, source = config.embedding, decoder.hidden, config.encoder_width
        self.context_width = {"attention": source, "every-step": hidden, "init": 0}[decoder.source]
        if decoder.source == "attention":
            self.attention = build_attention(config.attention, query_size=hidden, key_size=source, site=CROSS)
            self.context_width = hidden if config.attention.heads else source
        self.read_out = ReadOut(config, self.context_width, embedding.num_embeddings, embedding if tied else None)
        self.state_init = StateInit(config)
        assert decoder.kind in ("rnn", "gru", "lstm")
        if decoder.source == "every-step":
            self.summary = nn.Linear(source, hidden)
            states = decoder.layers * (2 if decoder.kind == "lstm" else 1)
            self.summary_to_state = nn.Linear(hidden, hidden * states)
        self.rnn = RecurrentStack(
            decoder.kind,
            word_width if decoder.combine and self.attention is not None else word_width + self._feed_width(),
            hidden,
            decoder.layers,
            dropout=config.dropout,
            residual=decoder.residual,
            layer_norm=decoder.layer_norm,
        )
        if decoder.gate:
            self.gate = nn.Linear(hidden, 1)
        if decoder.combine:
            self.combine = nn.Linear(word_width + self.context_width, word_width)
        if self.order == "conditional":
            self.second_gru = nn.GRU(self.context_width, hidden, batch_first=True)

    def _feed_width(self) -> int:
        """Return the width of the feed, the part of the RNN's input besides the word."""
        if self.input_feeding == "attentional":
            return self.read_out.projection_width
        feeds_nothing = self.order in ("update-attend-generate", "conditional") and self.input_feeding == "none"
        return 0 if feeds_nothing else self.context_width

    @property
    def order(self) -> str:
        """The step order; "none" without attention."""
        return self.config.step_order if self.attention is not None else "none"

    @property
    def input_feeding(self) -> str:
        """What enters the next step: "none", "context" or "attentional"; a setting in Luong's order only."""
        return self.config.input_feeding if self.order == "update-attend-generate" else "none"

    @property
    def step_mode(self) -> StepMode | Literal["feed-nothing"] | None:
        """The name of the step order in fused operations; None if they do not support it."""
        if self.order == "update-attend-generate":
            modes: dict[str, StepMode | Literal["feed-nothing"]] = {
                "none": "feed-nothing",
                "context": "feed-context",
                "attentional": "feed-attentional",
            }
            return modes[self.input_feeding]
        if self.order == "conditional":
            return "conditional"
        return "attend-first" if self.order == "attend-update-generate" else None

    @property
    def feature_width(self) -> int:
        return self.read_out.output.width

    @property
    def sites(self) -> tuple[Site, ...]:
        return () if self.attention is None else (self.attention.site,)

    @property
    def alignment_site(self) -> str | None:
        return None if self.attention is None else CROSS

    @property
    def alignment_shift(self) -> int:
        return {"update-attend-generate": 1, "conditional": 1, "attend-generate-update": 1}.get(self.order, 2)

    @property
    def parallel(self) -> bool:
        if self.attention is None:
            return True
        feeds_nothing = self.order == "update-attend-generate" and self.input_feeding == "none"
        return feeds_nothing and not self.attention.sequential

    def initial_state(self, encoder_output: EncoderOutput) -> State:
        """Return `s_0`, the prepared source, and the feed of the first step."""
        if self.config.source == "every-step":  # c = tanh(V h_T), s_0 = tanh(V' c)
            summary = torch.tanh(self.summary(encoder_output.hidden[-1]))
            count = self.config.layers * self.rnn.states_per_layer
            hidden = torch.tanh(self.summary_to_state(summary)).chunk(count, dim=-1)
            return State(hidden=tuple(hidden), per_sentence={SUMMARY: summary})
        hidden = self.state_init(encoder_output)
        if self.attention is None:
            return State(hidden=hidden)
        memory = self.attention.prepare(encoder_output.keys, encoder_output.keep, encoder_output.values)
        state = State({CROSS: memory}, hidden=hidden, carry={CROSS: self.attention.initial_carry(memory)})
        return state.advance(0, input_feed=self._initial_feed(state))

    def _initial_feed(self, state: State) -> Tensor | None:
        """Return the feed of the first step: zeros, or the context of `s_0`."""
        top = self.rnn.top(state.hidden)
        if self.input_feeding == "attentional":
            return top.new_zeros(top.shape[0], self.read_out.projection_width)
        if self.input_feeding == "context" and self.config.input_feeding_init == "attend":
            context, _, _ = attend_rows(not_none(self.attention), top[:, None], state, CROSS)
            return context[:, 0]
        feeds_context = self.input_feeding == "context" or self.order == "attend-generate-update"
        return top.new_zeros(top.shape[0], self.context_width) if feeds_context else None

    def decode(self, state: State, ids: Int[Tensor, "row query"], hooks: Hooks) -> DecoderOutput:
        words = self.dropout(self.embedding(ids))
        if self.attention is None:
            return self._without_attention(state, words)
        run_step = {
            "update-attend-generate": self._update_attend,
            "attend-update-generate": self._attend_update,
            "attend-generate-update": self._delayed_update,
            "conditional": self._conditional,
        }[self.order]
        step = run_step(state, words, hooks)
        features, vector = self.read_out(step.states, step.context, words)
        feed = None
        if self.order == "attend-generate-update" or self.input_feeding == "context":
            feed = step.context[:, -1]
        elif self.input_feeding == "attentional":
            feed = not_none(vector)[:, -1]
        return self._output(features, state, step, feed)

    def _without_attention(self, state: State, words: Words) -> DecoderOutput:
        inputs, summary = words, None
        if SUMMARY in state.per_sentence:
            summary = state.per_sentence[SUMMARY]
            summary = summary.repeat_interleave(words.shape[0] // summary.shape[0], dim=0)[:, None]
            summary = summary.expand(-1, words.shape[1], -1)
            inputs = torch.cat([words, summary], dim=-1)
        states, hidden = self.rnn(inputs, state.hidden)
        features, _ = self.read_out(states, summary, words)
        intermediates = {"state": states} if summary is None else {"state": states, "context": summary}
        after = state.advance(words.shape[1], hidden=hidden)
        return DecoderOutput(features, after, {}, intermediates, self.read_out.output)

    def _update_attend(self, state: State, words: Words, hooks: Hooks) -> _StepOutput:
        """Luong 2015, §3: `s_t = RNN([y_{t-1}; feed], s_{t-1})`, `c_t = attend(s_t)`."""
        inputs = words if state.input_feed is None else torch.cat([words, state.input_feed[:, None]], dim=-1)
        states, hidden = self.rnn(inputs, state.hidden)
        context, attention, carry = self._attend(states, state, hooks)
        return _StepOutput(states, context, hidden, attention, carry)

    def _attend_update(self, state: State, words: Words, hooks: Hooks) -> _StepOutput:
        """Bahdanau 2015, eq. 4-6: `c_t = attend(s_{t-1})`, `s_t = RNN([y_{t-1}; c_t], s_{t-1})`.

        With `gate` the context is multiplied by `sigmoid(w s_{t-1} + b)` (Xu 2015, §4.2.1). With `combine` the input of
        the RNN is `tanh(W [y_{t-1}; c_t] + b)`.
        """
        query = self.rnn.top(state.hidden)[:, None]
        context, attention, carry = self._attend(query, state, hooks)
        if self.config.gate:
            context = torch.sigmoid(self.gate(query)) * context
        inputs = torch.cat([words, context], dim=-1)
        if self.config.combine:
            inputs = torch.tanh(self.combine(inputs))
        states, hidden = self.rnn(inputs, state.hidden)
        return _StepOutput(states, context, hidden, attention, carry)

    def _delayed_update(self, state: State, words: Words, hooks: Hooks) -> _StepOutput:
        """Bahdanau's released code: `p(y_t) = g(s_{t-1}, y_{t-1}, c_t)`, then `s_t = RNN([y_t; c_t], s_{t-1})`.

        The word `y_t` is known only when the next step begins, so each step but the first begins with the update of
        the step before.
        """
        hidden = state.hidden
        if state.position > 0:
            _, hidden = self.rnn(torch.cat([words, not_none(state.input_feed)[:, None]], dim=-1), hidden)
        states = self.rnn.top(hidden)[:, None]
        context, attention, carry = self._attend(states, state, hooks)
        return _StepOutput(states, context, hidden, attention, carry)

    def _conditional(self, state: State, words: Words, hooks: Hooks) -> _StepOutput:
        """Nematus: `s' = GRU_1(y_{t-1}, s_{t-1})`, `c_t = attend(s')`, `s_t = GRU_2(c_t, s')`.

        With several layers, `s'` is the state of the top layer.
        """
        intermediate, hidden = self.rnn(words, state.hidden)
        context, attention, carry = self._attend(intermediate, state, hooks)
        states, final = self.second_gru(context, intermediate.transpose(0, 1).contiguous())
        return _StepOutput(states, context, (*hidden[:-1], final.squeeze(0)), attention, carry)

    def _attend(self, query: Tensor, state: State, hooks: Hooks) -> tuple[Tensor, AttentionOutput, Carry]:
        return attend_rows(not_none(self.attention), query, state, CROSS, hooks)

    def _output(self, features: Tensor, state: State, step: _StepOutput, feed: Tensor | None) -> DecoderOutput:
        after = state.advance(features.shape[1], hidden=step.hidden, carry={CROSS: step.carry}, input_feed=feed)
        intermediates = {"state": step.states, "context": step.context}
        return DecoderOutput(features, after, {CROSS: step.attention}, intermediates, self.read_out.output)

    def decode_steps(self, state: State, ids: Int[Tensor, "row query"], hooks: Hooks) -> DecoderOutput:
        """Feed several tokens, in one fused operation if it supports this decoder."""
        spec = self._fused_spec(state, hooks, ids.shape[1])
        return super().decode_steps(state, ids, hooks) if spec is None else self._fused_steps(spec, state, ids)

    def _fused_spec(self, state: State, hooks: Hooks, steps: int) -> DecoderSpec | None:
        """Return the spec for `fused_steps`; None if it does not support this decoder or these hooks."""
        attention, rnn, mode = not_none(self.attention), self.rnn, self.step_mode
        if mode is None or mode == "feed-nothing" or not fused_steps_support(attention, hooks, *state.hidden):
            return None
        if rnn.kind == "rnn" or rnn.norms or rnn.residual or self.config.combine:
            return None
        has_tanh = self.read_out.kind == "tanh" and isinstance(self.read_out.projection, nn.Linear)
        if mode == "feed-attentional" and not has_tanh:
            return None
        if mode == "conditional" and (rnn.kind != "gru" or len(rnn.layers) > 1):
            return None
        masks: tuple[Tensor, ...] = ()
        if kernels.is_dropout_active(rnn.dropout.p, rnn.dropout.training):
            ones = state.hidden[0].new_ones(steps, *state.hidden[0].shape)
            masks = tuple(rnn.dropout(ones) for _ in range(len(rnn.layers) - 1))
        scale = attention.score.scale if isinstance(attention.score, Dot | General) else None
        record_weights = hooks.detail_at(CROSS) is Detail.WEIGHTS
        return DecoderSpec(mode, rnn.kind, len(rnn.layers), scale, record_weights, masks)

    def _fused_steps(self, spec: DecoderSpec, state: State, ids: Int[Tensor, "row query"]) -> DecoderOutput:
        """Run all steps with `fused_steps`; input gates and read-outs are computed for all steps at once."""
        memory, hidden = state.memory[CROSS], state.hidden
        words = self.dropout(self.embedding(ids))
        input_weight, _, input_bias, _ = self.rnn.layers[0].all_weights[0]
        no_feed = hidden[0].new_zeros(len(hidden[0]), 0)
        output = fused_steps(
            spec,
            nn.functional.linear(words, input_weight[:, : words.shape[-1]], input_bias),
            hidden,
            no_feed if state.input_feed is None else state.input_feed,
            memory.keys[:, :, 0],
            memory.values[:, :, 0],
            memory.keep,
            self._fused_weights(spec, words.shape[-1]),
        )
        feed = None
        if spec.mode == "feed-attentional":
            features, feed = self.read_out.dropout(output.attentional_vectors), output.attentional_vectors[:, -1]
        else:
            features, _ = self.read_out(output.states, output.contexts, words)
            feed = output.contexts[:, -1] if spec.mode == "feed-context" else None
        attention = AttentionOutput(weights=None if output.weights is None else output.weights[:, :, None])
        carry = state.carry.get(CROSS, EMPTY)
        return self._output(
            features, state, _StepOutput(output.states, output.contexts, output.final, attention, carry), feed
        )

    def _fused_weights(self, spec: DecoderSpec, word_width: int) -> DecoderWeights:
        """Return the weights of the recurrence; `word_width` is the width of the word embeddings."""
        (input_weight, hidden_weight, _, hidden_bias), *upper = (rnn.all_weights[0] for rnn in self.rnn.layers)
        layers = [CellWeights(hidden_weight, hidden_bias)]
        layers += [CellWeights(h, h_bias, i, i_bias) for i, h, i_bias, h_bias in upper]
        weights = DecoderWeights(tuple(layers), input_feed=input_weight[:, word_width:])
        score = not_none(self.attention).score
        if isinstance(score, Additive):
            weights = weights._replace(query=score.query.weight, v=score.v)
        if self.config.gate:
            weights = weights._replace(gate=self.gate.weight, gate_bias=self.gate.bias)
        if spec.mode == "feed-attentional":
            weights = weights._replace(attentional=self.read_out.projection.weight)
        elif spec.mode == "conditional":
            i, h, i_bias, h_bias = self.second_gru.all_weights[0]
            weights = weights._replace(input_feed=None, second_gru=CellWeights(h, h_bias, i, i_bias))
        return weights

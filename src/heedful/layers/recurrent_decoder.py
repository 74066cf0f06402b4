"""The recurrent decoder: four orders of looking, moving and speaking, and two ways without attention."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful import native
from heedful.attention import EMPTY, Additive, Attention, Carry, Detail, Look, Watch, build_attention
from heedful.attention.scores import Dot, General
from heedful.config import ModelConfig
from heedful.config.model import encoder_width
from heedful.layers.dropout import Dropout
from heedful.layers.modules import must
from heedful.layers.readout import Output, ReadOut
from heedful.layers.recurrent import Stack
from heedful.layers.start import Start
from heedful.layers.state import Read, State, Stepped, look_rows, one_by_one
from heedful.layers.step_cells import Layer
from heedful.layers.steps import Mode, Plan, Weights, many_steps
from heedful.record import Site

CROSS = "cross"
SUMMARY = "summary"  # Cho's one vector, per sentence


class RecurrentDecoder(nn.Module):
    """Writes with a stack of RNNs that looks at the source in the order the config names.

    Where nothing of a look enters the recurrence (`parallel`), many given words are computed at once.
    """

    def __init__(self, config: ModelConfig, embedding: nn.Embedding, tied: bool) -> None:
        super().__init__()
        decoder = config.decoder
        self.config = decoder
        self.embedding = embedding
        self.dropout = Dropout(config.dropout)
        self.attention: Attention | None = None
        word, hidden, wide = config.embedding, decoder.hidden, encoder_width(config)
        context = {"attention": wide, "every-step": hidden, "init": 0}[decoder.source]
        if decoder.source == "attention":
            self.attention = build_attention(config.attention, query=hidden, key=wide, site=CROSS)
            context = hidden if config.attention.heads else wide
        self.context_width = context
        self.read_out = ReadOut(config, context, embedding.num_embeddings, embedding if tied else None)
        self.start = Start(config)
        if decoder.source == "every-step":
            self.summary = nn.Linear(wide, hidden)
            states = decoder.layers * (2 if decoder.kind == "lstm" else 1)
            self.first_state = nn.Linear(hidden, hidden * states)
        assert decoder.kind in ("rnn", "gru", "lstm")
        self.stack = Stack(
            decoder.kind,
            self._input_width(word),
            hidden,
            decoder.layers,
            dropout=config.dropout,
            residual=decoder.residual,
            layer_norm=decoder.layer_norm,
        )
        if decoder.gate:
            self.gate = nn.Linear(hidden, 1)
        if decoder.combine:
            self.combine = nn.Linear(word + context, word)
        if self.order == "conditional":
            self.second = nn.GRU(context, hidden, batch_first=True)

    @property
    def order(self) -> str:
        """Without attention there is nothing to order."""
        return self.config.order if self.attention is not None else "none"

    @property
    def output(self) -> Output:
        return self.read_out.output

    @property
    def mode(self) -> Mode | Literal["feed nothing"] | None:
        """What of a look enters where, as the quick ways call it; None: they do not know this order."""
        if self.order == "update-look-generate":
            feeds: dict[str, Mode | Literal["feed nothing"]] = {
                "none": "feed nothing",
                "context": "feed context",
                "attentional": "feed vector",
            }
            return feeds[self.config.feed]
        if self.order == "conditional":
            return "conditional"
        return "look first" if self.order == "look-update-generate" else None

    @property
    def parallel(self) -> bool:
        if self.attention is None:
            return True
        free = self.order == "update-look-generate" and self.config.feed == "none"
        return free and not self.attention.sequential

    @property
    def sites(self) -> tuple[Site, ...]:
        return () if self.attention is None else (self.attention.site,)

    @property
    def alignment(self) -> str | None:
        return None if self.attention is None else CROSS

    @property
    def shift(self) -> int:
        """How many steps later a query has read the word a step writes (for alignments read by `shift`)."""
        return {"update-look-generate": 1, "conditional": 1, "look-generate-update": 1}.get(self.order, 2)

    def _input_width(self, word: int) -> int:
        if self.config.source == "every-step":
            return word + self.config.hidden
        if self.attention is None or self.order == "conditional":
            return word
        if self.order == "update-look-generate":
            fed = {"none": 0, "context": self.context_width}.get(self.config.feed)
            return word + (self.read_out.inner_width if fed is None else fed)
        return word if self.config.combine else word + self.context_width

    def begin(self, read: Read) -> State:
        """The state before the first word."""
        if self.config.source == "every-step":
            summary = torch.tanh(self.summary(read.hidden[-1]))
            count = self.config.layers * self.stack.per_layer
            cells = torch.tanh(self.first_state(summary)).chunk(count, dim=-1)
            return State(cells=tuple(cells), fixed={SUMMARY: summary})
        cells = self.start(read)
        if self.attention is None:
            return State(cells=cells)
        memory = self.attention.prepare(read.keys, read.keep, read.values)
        state = State({CROSS: memory}, cells=cells, carry={CROSS: self.attention.start(memory)})
        return state.moved(0, feed=self._first_feed(state))

    def _first_feed(self, state: State) -> Tensor | None:
        """What is fed into the first step: zeros, or the context that `s_0` would read."""
        rows = state.cells[0]
        if self.order == "look-generate-update":
            return rows.new_zeros(len(rows), self.context_width)
        if self.order != "update-look-generate" or self.config.feed == "none":
            return None
        if self.config.feed == "attentional":
            return rows.new_zeros(len(rows), self.read_out.inner_width)
        if self.config.feed_start == "zero":
            return rows.new_zeros(len(rows), self.context_width)
        assert self.attention is not None
        context, _, _ = look_rows(self.attention, self.stack.top(state.cells)[:, None], state, CROSS)
        return context[:, 0]

    def write(self, state: State, ids: Int[Tensor, "row query"], watch: Watch) -> Stepped:
        """Go on with these words: at once where nothing depends on the looks, else one by one."""
        if not self.parallel and ids.shape[1] > 1:
            plan = self._quick_plan(state, watch, ids.shape[1])
            return (
                one_by_one(self.write, state, ids, watch) if plan is None else self._quick(plan, state, ids)
            )
        words = self.dropout(self.embedding(ids))
        if self.attention is None:
            return self._without_attention(state, words)
        step = {
            "update-look-generate": self._update_look_generate,
            "look-update-generate": self._look_update_generate,
            "look-generate-update": self._look_generate_update,
            "conditional": self._conditional,
        }[self.order]
        return step(state, words, watch)

    def _without_attention(self, state: State, words: Float[Tensor, "row query word"]) -> Stepped:
        context = None
        inputs = words
        if SUMMARY in state.fixed:
            summary = state.fixed[SUMMARY]
            context = summary.repeat_interleave(len(words) // len(summary), dim=0)[:, None]
            context = context.expand(-1, words.shape[1], -1)
            inputs = torch.cat([words, context], dim=-1)
        tops, cells = self.stack(inputs, state.cells)
        said, _ = self.read_out(tops, context, words)
        inner = {"state": tops} if context is None else {"state": tops, "context": context}
        return Stepped(said, state.moved(words.shape[1], cells=cells), {}, inner, self.read_out.output)

    def _update_look_generate(
        self, state: State, words: Float[Tensor, "row query word"], watch: Watch
    ) -> Stepped:
        """Luong 2015: `s_t = RNN(emb(y_{t-1}) [; fed])`, `c_t = look(s_t)`, read out."""
        inputs = words if state.feed is None else torch.cat([words, state.feed[:, None]], dim=-1)
        tops, cells = self.stack(inputs, state.cells)
        context, look, carry = self._look(tops, state, watch)
        said, vector = self.read_out(tops, context, words)
        feed = None
        if self.config.feed != "none":
            feed = (context if self.config.feed == "context" else must(vector))[:, -1]
        return self._stepped(said, state, cells, look, carry, (tops, context), feed)

    def _look_update_generate(
        self, state: State, words: Float[Tensor, "row query word"], watch: Watch
    ) -> Stepped:
        """Bahdanau 2015 as printed: `c_t = look(s_{t-1})`, `s_t = RNN([emb(y_{t-1}); c_t])`, read out.

        With a gate (Xu 2015, section 4.2.1) what was read counts `sigmoid(w s_{t-1} + b)`.
        """
        before = self.stack.top(state.cells)[:, None]
        context, look, carry = self._look(before, state, watch)
        if self.config.gate:
            context = torch.sigmoid(self.gate(before)) * context
        inputs = torch.cat([words, context], dim=-1)
        if self.config.combine:
            inputs = torch.tanh(self.combine(inputs))
        tops, cells = self.stack(inputs, state.cells)
        said, _ = self.read_out(tops, context, words)
        return self._stepped(said, state, cells, look, carry, (tops, context))

    def _look_generate_update(
        self, state: State, words: Float[Tensor, "row query word"], watch: Watch
    ) -> Stepped:
        """Bahdanau's released code: `p(y_t) = g(s_{t-1}, y_{t-1}, c_t)`, then `s_t = RNN([emb(y_t); c_t])`.

        The word that moves the state is known only when the next step begins, so each step but the
        first opens with the update of the one before.
        """
        cells = state.cells
        if state.at > 0:
            inputs = torch.cat([words, must(state.feed)[:, None]], dim=-1)
            _, cells = self.stack(inputs, cells)
        tops = self.stack.top(cells)[:, None]
        context, look, carry = self._look(tops, state, watch)
        said, _ = self.read_out(tops, context, words)
        return self._stepped(said, state, cells, look, carry, (tops, context), context[:, -1])

    def _conditional(self, state: State, words: Float[Tensor, "row query word"], watch: Watch) -> Stepped:
        """nmtpy, Nematus: `s' = GRU1(emb(y_{t-1}), s_{t-1})`, `c_t = look(s')`, `s_t = GRU2(c_t, s')`.

        With several layers the look stands above the stack: its top state is `s'`.
        """
        between, cells = self.stack(words, state.cells)
        context, look, carry = self._look(between, state, watch)
        tops, last = self.second(context, between.transpose(0, 1).contiguous())
        said, _ = self.read_out(tops, context, words)
        cells = (*cells[:-1], last.squeeze(0))
        return self._stepped(said, state, cells, look, carry, (tops, context))

    def _quick_plan(self, state: State, watch: Watch, steps: int) -> Plan | None:
        """How `many_steps` would take them, if it can."""
        attention, stack = self.attention, self.stack
        kind = stack.kind
        known = (
            attention is not None
            and attention.plain
            and watch.edit is None
            and watch.detail_at(CROSS) in (Detail.NONE, Detail.WEIGHTS)
            and native.fits(*state.cells)
            and not torch.is_autocast_enabled("cpu")
            and not (stack.norms or stack.residual or self.config.combine)
        )
        if not known or kind == "rnn":
            return None
        assert attention is not None
        if isinstance(attention.score, Additive) and not isinstance(attention.score.query, nn.Linear):
            return None  # in bytes
        mode = self.mode
        if mode is None or mode == "feed nothing":
            return None
        tanh = self.read_out.kind == "tanh" and isinstance(self.read_out.inner, nn.Linear)
        if mode == "feed vector" and not tanh:
            return None
        alone = (kind, len(stack.layers)) == ("gru", 1)
        if mode == "conditional" and not alone:
            return None
        dropped = []
        if stack.dropout.training and stack.dropout.p > 0:
            ones = state.cells[0].new_ones(steps, *state.cells[0].shape)
            dropped = [stack.dropout(ones) for _ in range(len(stack.layers) - 1)]
        scale = attention.score.scale if isinstance(attention.score, Dot | General) else None
        watched = watch.detail_at(CROSS) is Detail.WEIGHTS
        return Plan(mode, kind, len(stack.layers), scale, watched, tuple(dropped))

    def _quick(self, plan: Plan, state: State, ids: Int[Tensor, "row query"]) -> Stepped:
        """All steps by `many_steps`; what words bring and what is read out are computed for all at once."""
        attention, memory = self.attention, state.memory[CROSS]
        assert attention is not None
        words = self.dropout(self.embedding(ids))
        (into, hidden, into_bias, hidden_bias), *above = (rnn.all_weights[0] for rnn in self.stack.layers)
        bring, fed = into[:, : words.shape[-1]], into[:, words.shape[-1] :]
        layers = [Layer(hidden, hidden_bias)]
        layers += [Layer(hidden, bias, into, into_bias) for into, hidden, into_bias, bias in above]
        weights = Weights(tuple(layers), fed)
        if isinstance(attention.score, Additive):
            weights = weights._replace(ask=attention.score.query.weight, v=attention.score.v)
        if self.config.gate:
            weights = weights._replace(gate=self.gate.weight, gate_bias=self.gate.bias)
        if plan.mode == "feed vector":
            weights = weights._replace(mix=self.read_out.inner.weight)
        elif plan.mode == "conditional":
            fed, hidden, fed_bias, hidden_bias = self.second.all_weights[0]
            weights = weights._replace(fed=None, second=Layer(hidden, hidden_bias, fed, fed_bias))
        start = state.cells
        written = many_steps(
            plan,
            nn.functional.linear(words, bring, into_bias),
            start,
            start[0].new_zeros(len(start[0]), 0) if state.feed is None else state.feed,
            memory.keys[:, :, 0],
            memory.values[:, :, 0],
            memory.keep,
            weights,
        )
        states, contexts, vectors, looked, last = written
        feed = None
        if plan.mode == "feed vector":
            said, feed = self.read_out.dropout(vectors), vectors[:, -1]
        else:
            said, _ = self.read_out(states, contexts, words)
            feed = contexts[:, -1] if plan.mode == "feed context" else None
        carry = state.carry.get(CROSS, EMPTY)
        look = Look(None if looked is None else looked[:, :, None])
        return self._stepped(said, state, last, look, carry, (states, contexts), feed)

    def _look(self, query: Tensor, state: State, watch: Watch) -> tuple[Tensor, Look, Carry]:
        assert self.attention is not None
        return look_rows(self.attention, query, state, CROSS, watch)

    def _stepped(
        self,
        said: Tensor,
        state: State,
        cells: tuple[Tensor, ...],
        look: Look,
        carry: Carry,
        given: tuple[Tensor, Tensor],
        feed: Tensor | None = None,
    ) -> Stepped:
        after = state.moved(said.shape[1], cells=cells, carry={CROSS: carry}, feed=feed)
        inner = dict(zip(("state", "context"), given, strict=True))  # what the read-out was given
        return Stepped(said, after, {CROSS: look}, inner, self.read_out.output)

"""The LSTMN (Cheng, Dong & Lapata 2016, eq. 5-10): an LSTM that attends to a tape of all its earlier states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention import NO_HOOKS, Additive, AttentionOutput, Detail, Hooks, Memory, Tape
from heedful.attention.tape import key_position, query_position
from heedful.config import EncoderConfig
from heedful.fused.tape_steps import InitialTape, TapeOutput, TapeWeights, tape_steps
from heedful.fused.tape_steps import supports as tape_steps_support
from heedful.layers.dropout import Dropout
from heedful.layers.modules import TypedModuleList
from heedful.layers.state import EncoderOutput, concat_attention_outputs
from heedful.trace.schema import Site


class TapeState(NamedTuple):
    """The state between two steps: the tape, the last summary `h~`, and the last hidden state and cell."""

    tape: Memory
    summary: Float[Tensor, "batch hidden"]
    hidden: Float[Tensor, "batch hidden"]
    cell: Float[Tensor, "batch hidden"]

    def detach(self) -> TapeState:
        """Return the state, detached from the autograd graph."""
        keys, values, keep = self.tape.keys.detach(), self.tape.values.detach(), self.tape.keep
        return TapeState(Memory(keys, values, keep), *(t.detach() for t in self[1:]))

    def truncate(self, max_slots: int, fixed_slots: int) -> TapeState:
        """Return the state with only the last `max_slots` slots; the first `fixed_slots` are kept in addition."""
        count = self.tape.keep.shape[1]
        if count - fixed_slots <= max_slots:
            return self
        indices = [*range(fixed_slots), *range(count - max_slots, count)]
        slots = torch.tensor(indices, device=self.hidden.device)
        tape = Memory(self.tape.keys[:, slots], self.tape.values[:, slots], self.tape.keep[:, slots])
        return self._replace(tape=tape)


class LSTMNCell(nn.Module):
    """`[i f o g] = W [h~_t; x_t]`, `m_t = f * m~_t + i * g`, `h_t = o * tanh m_t` (eq. 8-10).

    `recall`, `zero_slot` and `recency` are options of `Tape`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        recall: bool = True,
        zero_slot: bool = False,
        recency: bool = False,
        site: str = "tape",
    ) -> None:
        super().__init__()
        self.tape = Tape(input_size, hidden_size, recall=recall, zero_slot=zero_slot, recency=recency, site=site)
        self.gates = nn.Linear(hidden_size + input_size, 4 * hidden_size)

    def initial_state(self, x: Float[Tensor, "batch input"]) -> TapeState:
        zeros = x.new_zeros(len(x), self.tape.hidden_size)
        return TapeState(self.tape.initial_memory(x), zeros, zeros, zeros)

    def forward(
        self,
        x: Float[Tensor, "batch input"],
        state: TapeState,
        keep: Bool[Tensor, "batch"] | None = None,
        hooks: Hooks = NO_HOOKS,
    ) -> tuple[TapeState, AttentionOutput]:
        """Run one step; `h_t` is the `hidden` of the new state. At padding (`keep` False) the state stays as it is."""
        summary, previous_cell, attention = self.tape(x, state.tape, state.summary, hooks)
        i, f, o, g = self.gates(torch.cat([summary, x], dim=-1)).chunk(4, dim=-1)
        cell = f.sigmoid() * previous_cell + i.sigmoid() * g.tanh()
        hidden = o.sigmoid() * cell.tanh()
        tape = self.tape.write(state.tape, hidden, cell, keep)
        if keep is not None:
            is_word = keep[:, None]
            summary = torch.where(is_word, summary, state.summary)
            hidden, cell = torch.where(is_word, hidden, state.hidden), torch.where(is_word, cell, state.cell)
        return TapeState(tape, summary, hidden, cell), attention


class LSTMNOutput(NamedTuple):
    """The hidden states of the top layer (zeros at padding), the state of every layer, and its attention.

    Attention weights are (batch, position, 1, slot): first the slots of the initial state (or the zero slot), then one
    slot per position.
    """

    hidden: Float[Tensor, "batch step hidden"]
    state: tuple[TapeState, ...]
    attentions: Mapping[str, AttentionOutput]


class LSTMN(nn.Module):
    """Stacked LSTMN layers, each with its own tape (Cheng 2016, §3.2).

    The input of a layer is the output of the layer below after `dropout`; with `skip` the input of the lowest layer is
    concatenated to it. `recall`, `zero_slot` and `recency` are options of `Tape`.
    """

    def __init__(  # noqa: PLR0913 - one argument per independent choice
        self,
        input_size: int,
        hidden_size: int,
        layers: int = 1,
        *,
        recall: bool = True,
        zero_slot: bool = False,
        recency: bool = False,
        skip: bool = False,
        dropout: nn.Module | None = None,
        site: str = "tape",
    ) -> None:
        super().__init__()
        self.hidden_size, self.skip = hidden_size, skip
        widths = [input_size, *[hidden_size + input_size if skip else hidden_size] * (layers - 1)]
        self.cells = TypedModuleList(
            LSTMNCell(width, hidden_size, recall=recall, zero_slot=zero_slot, recency=recency, site=f"{site}.{depth}")
            for depth, width in enumerate(widths)
        )
        self.dropout = Dropout(0.0) if dropout is None else dropout

    @property
    def sites(self) -> tuple[Site, ...]:
        return tuple(cell.tape.attention.site for cell in self.cells)

    def forward(
        self,
        inputs: Float[Tensor, "batch step input"],
        keep: Bool[Tensor, "batch step"] | None = None,
        state: tuple[TapeState, ...] | None = None,
        hooks: Hooks = NO_HOOKS,
    ) -> LSTMNOutput:
        """Run over the positions where `keep` is True, starting from `state`; no gradient flows into `state`."""
        if keep is None:
            keep = torch.ones(inputs.shape[:2], dtype=torch.bool, device=inputs.device)
        attentions: dict[str, AttentionOutput] = {}
        final_states: list[TapeState] = []
        x = inputs
        for depth, cell in enumerate(self.cells):
            if depth:
                x = self.dropout(x)
                x = torch.cat([x, inputs], dim=-1) if self.skip else x
            initial = cell.initial_state(x.new_zeros(len(x), x.shape[-1])) if state is None else state[depth].detach()
            site = cell.tape.attention.site.id
            run_layer = _run_layer_fused if tape_steps_support(x, keep, hooks, site) else _run_layer_by_steps
            x, final, attentions[site] = run_layer(cell, x, keep, initial, hooks)
            final_states.append(final)
        return LSTMNOutput(x, tuple(final_states), attentions)


class LSTMNEncoder(nn.Module):
    """The LSTMN as an encoder: each word attends to the words before it."""

    def __init__(self, config: EncoderConfig, input_size: int, dropout: float) -> None:
        super().__init__()
        self.lstmn = LSTMN(input_size, config.hidden, config.layers, dropout=Dropout(dropout), site="enc.tape")
        self.dropout = Dropout(dropout)

    @property
    def sites(self) -> tuple[Site, ...]:
        return self.lstmn.sites

    def forward(
        self,
        words: Float[Tensor, "batch key input"],
        keep: Bool[Tensor, "batch key"],
        hooks: Hooks = NO_HOOKS,
    ) -> EncoderOutput:
        output = self.lstmn(words, keep, hooks=hooks)
        states = self.dropout(output.hidden)
        tapes = {site.id: state.tape for site, state in zip(self.sites, output.state, strict=True)}
        return EncoderOutput(states, states, keep, attentions=output.attentions, tapes=tapes)


LayerOutput = tuple[Float[Tensor, "batch step hidden"], TapeState, AttentionOutput]
"""The hidden states of one layer, its state after the last step, and the attention of its tape."""


def _run_layer_by_steps(cell: LSTMNCell, x: Tensor, keep: Tensor, state: TapeState, hooks: Hooks) -> LayerOutput:
    """Run one layer step by step."""
    slots = state.tape.keep.shape[1] + x.shape[1]
    hidden: list[Tensor] = []
    attentions: list[AttentionOutput] = []
    for t in range(x.shape[1]):
        state, attention = cell(x[:, t], state, keep[:, t], hooks)
        hidden.append(state.hidden.masked_fill(~keep[:, t, None], 0.0))
        attentions.append(_pad_slots(attention, slots, keep[:, t]))
    if not hidden:
        return x.new_zeros(len(x), 0, cell.tape.hidden_size), state, AttentionOutput()
    return torch.stack(hidden, dim=1), state.detach(), concat_attention_outputs(attentions)


def _pad_slots(output: AttentionOutput, slots: int, keep: Bool[Tensor, "batch"]) -> AttentionOutput:
    """Pad a step's weights and scores with zeros for later slots; the weights of a padded step are all zeros."""

    def mask(t: Tensor) -> Tensor:
        return t.masked_fill(~keep[:, None, None, None], 0.0)

    def pad(t: Tensor | None) -> Tensor | None:
        return None if t is None else mask(nn.functional.pad(t, (0, slots - t.shape[-1])))

    head_contexts = None if output.head_contexts is None else mask(output.head_contexts)
    return AttentionOutput(
        output.context, pad(output.weights), pad(output.scores), output.extras, output.query, head_contexts
    )


def _run_layer_fused(cell: LSTMNCell, x: Tensor, keep: Tensor, state: TapeState, hooks: Hooks) -> LayerOutput:
    """Run all steps of one layer as one operation."""
    tape, hidden_size, input_size = cell.tape, cell.tape.hidden_size, x.shape[-1]
    score = tape.attention.score
    assert isinstance(score, Additive)
    # The kernels take the gates in torch's order: input, forget, candidate, output.
    gate_weight = cell.gates.weight.view(4, hidden_size, -1)[[0, 1, 3, 2]].flatten(end_dim=1)
    gate_bias = cell.gates.bias.view(4, hidden_size)[[0, 1, 3, 2]].flatten()
    summary_weight = gate_weight[:, :hidden_size]
    if tape.recall:
        recall_weight = score.query.weight[:, input_size : input_size + hidden_size]
        summary_weight = torch.cat([summary_weight, recall_weight])
    first_step = state.tape.keep.shape[1] - tape.initial_slots
    key_offset = x.new_zeros(x.shape[1], len(score.v))
    if tape.recency:
        positions = [key_position(step) for step in range(first_step, first_step + x.shape[1])]
        key_offset = x.new_tensor(positions)[:, None] * score.key.weight[:, -1]
    output = tape_steps(
        InitialTape(state.tape.keys[:, :, 0], state.tape.values[:, :, 0], state.tape.keep),
        keep,
        _tape_queries(tape, score, x, state.summary, first_step),
        nn.functional.linear(x, gate_weight[:, hidden_size:], gate_bias),
        TapeWeights(summary_weight.contiguous(), score.key.weight[:, :hidden_size], score.v, key_offset),
    )
    padding = ~keep[:, :, None]
    weights = None
    if hooks.detail_at(tape.attention.site.id) is Detail.WEIGHTS:
        weights = output.weights.masked_fill(padding, 0.0)[:, :, None]
    final = _final_state(output, keep, state)
    return output.hidden.masked_fill(padding, 0.0), final, AttentionOutput(weights=weights)


def _tape_queries(tape: Tape, score: Additive, x: Tensor, initial_summary: Tensor, first_step: int) -> Tensor:
    """Return the parts of all queries that do not depend on the summaries computed in this run."""
    weight, input_size = score.query.weight, x.shape[-1]  # columns: input, summary (recall), position (recency)
    queries = x @ weight[:, :input_size].T
    if tape.recency:
        positions = [query_position(step) for step in range(first_step, first_step + x.shape[1])]
        queries = queries + x.new_tensor(positions)[:, None] * weight[:, -1]
    if tape.recall and first_step:  # the first query depends on the summary of the step before
        recall_weight = weight[:, input_size : input_size + tape.hidden_size]
        first = queries[:, :1] + (initial_summary @ recall_weight.T)[:, None]
        queries = torch.cat([first, queries[:, 1:]], dim=1)
    return queries


def _final_state(output: TapeOutput, keep: Tensor, initial: TapeState) -> TapeState:
    """Return the state after the last word of each sentence."""
    hidden_size = initial.hidden.shape[-1]
    tape = Memory(output.keys[:, :, None], output.values[:, :, None], torch.cat([initial.tape.keep, keep], dim=1))
    new_slots = output.values[:, initial.tape.keep.shape[1] :]
    lengths = keep.sum(dim=1)
    return TapeState(
        tape,
        _last_step(output.summaries[:, :, :hidden_size], lengths, initial.summary),
        _last_step(new_slots[:, :, :hidden_size], lengths, initial.hidden),
        _last_step(new_slots[:, :, hidden_size:], lengths, initial.cell),
    )


def _last_step(
    steps: Float[Tensor, "batch step hidden"], lengths: Int[Tensor, "batch"], initial: Float[Tensor, "batch hidden"]
) -> Float[Tensor, "batch hidden"]:
    """Return the value at the last step of each sentence; for an empty one, the initial value."""
    values = torch.cat([initial[:, None], steps], dim=1)
    return values[torch.arange(len(lengths), device=lengths.device), lengths].detach()

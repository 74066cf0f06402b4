"""The outputs of encoders and decoders, and the state of a decoder between steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention import EMPTY, NO_HOOKS, Attention, AttentionOutput, Carry, Hooks, Memory
from heedful.optional import not_none


class EncoderOutput(NamedTuple):
    """The output of an encoder: keys and values for attention, and the final recurrent states.

    `hidden` and `cells` hold the final states of every layer, directions concatenated; they are empty for
    encoders without recurrence (`cells` also for GRUs and plain RNNs). `tapes` holds the memories that an LSTMN
    wrote, by site.
    """

    keys: Float[Tensor, "batch key width"]
    values: Float[Tensor, "batch key width"]
    keep: Bool[Tensor, "batch key"]
    hidden: tuple[Float[Tensor, "batch state"], ...] = ()
    cells: tuple[Float[Tensor, "batch state"], ...] = ()
    attentions: Mapping[str, AttentionOutput] = MappingProxyType({})
    tapes: Mapping[str, Memory] = MappingProxyType({})

    def mean(self) -> Float[Tensor, "batch width"]:
        """Return the mean key over the positions of `keep`; zeros for a sentence without any."""
        weights = self.keep.to(self.keys.dtype) / self.keep.sum(dim=1, keepdim=True).clamp_min(1)
        return torch.einsum("bk,bkd->bd", weights, self.keys)


@dataclass(frozen=True, slots=True)
class State:
    """The state of a decoder between two steps.

    A row is a hypothesis: each sentence has `beam` consecutive rows. What depends only on the source (`memory`,
    `per_sentence`) is held once per sentence, everything else once per row.
    """

    memory: Mapping[str, Memory] = field(default_factory=dict)  # by site: the encoded source
    cache: Mapping[str, Memory] = field(default_factory=dict)  # by site: keys and values of earlier target tokens
    hidden: tuple[Tensor, ...] = ()  # (row, ...): recurrent states, or what a decoder remembers of earlier inputs
    input_feed: Tensor | None = None  # (row, width): the part of the last step's output that enters the next step
    carry: Mapping[str, Carry] = field(default_factory=dict)  # by site: what attention carries between steps
    per_sentence: Mapping[str, Tensor] = field(default_factory=dict)  # further tensors, (sentence, ...)
    position: int = 0  # of the next target token, the same for all rows

    def select(self, rows: Int[Tensor, "row"], sentences: Int[Tensor, "kept"] | None = None, beam: int = 1) -> State:
        """Return the state of the given rows, in that order.

        `sentences` are the sentences that remain, None for all of them. `beam` is the number of rows per sentence
        in the result; rows of one sentence must be consecutive.
        """
        memory, per_sentence = self.memory, self.per_sentence
        if sentences is not None:
            memory = {site: m.select(sentences) for site, m in memory.items()}
            per_sentence = {name: t[sentences] for name, t in per_sentence.items()}
        return State(
            memory,
            {site: m.select(rows) for site, m in self.cache.items()},
            tuple(h[rows] for h in self.hidden),
            None if self.input_feed is None else self.input_feed[rows],
            {site: _select_carry(carry, rows, beam) for site, carry in self.carry.items()},
            per_sentence,
            self.position,
        )

    def expand_to_beam(self, beam: int) -> State:
        """Repeat every row `beam` times; what is held per sentence is not repeated."""
        count = next(len(t) for t in self._row_tensors())
        rows = torch.arange(count).repeat_interleave(beam)
        return self.select(rows, beam=beam)

    def _row_tensors(self) -> list[Tensor]:
        caches = [m.keep for m in self.cache.values()]
        return [*self.hidden, *caches, *([self.input_feed] if self.input_feed is not None else [])]

    def advance(self, steps: int, **changes: object) -> State:
        """Return the state `steps` positions further, with the given fields replaced."""
        return replace(self, position=self.position + steps, **changes)  # type: ignore[arg-type]


def _select_carry(carry: Carry, rows: Tensor, beam: int) -> Carry:
    """Select rows of a carry, whose tensors are (sentence, beam, ...)."""
    return {name: t.flatten(0, 1)[rows].view(-1, beam, *t.shape[2:]) for name, t in carry.items()}


COPY = "copy"  # site of the attention of the copy mechanism
SOURCE_IDS = "source ids"  # key of `State.per_sentence`: the source tokens, which can be copied


class PointerOutput(NamedTuple):
    """The output of the copy mechanism (See 2017): attention weights over the source, and the logit of the gate.

    `sigmoid(gate)` is the probability of copying, `ids` are the source tokens.
    """

    weights: Float[Tensor, "row query key"]
    gate: Float[Tensor, "row query"]
    ids: Int[Tensor, "row key"]

    def mix(self, logits: Float[Tensor, "row query vocab"]) -> Float[Tensor, "row query vocab"]:
        """Return the log-probabilities of the mixture of generating and copying (See 2017, eq. 9)."""
        generated = logits.softmax(dim=-1) * torch.sigmoid(-self.gate)[..., None]
        ids = self.ids[:, None].expand_as(self.weights)
        mixture = generated.scatter_add(-1, ids, self.weights * torch.sigmoid(self.gate)[..., None])
        return mixture.clamp_min(torch.finfo(mixture.dtype).tiny).log()


def identity_output(features: Tensor) -> Tensor:
    """Return the features: the output layer of models whose features already are the logits."""
    return features


class DecoderOutput(NamedTuple):
    """The output of one or more decoder steps, and the state after them.

    `features` are the inputs of the output layer, `intermediates` the tensors of the last layer that traces record.
    `logits` is computed on access: it is the largest matrix product of most models, and training computes it in chunks
    and without padding.
    """

    features: Float[Tensor, "row query width"]
    state: State
    attentions: Mapping[str, AttentionOutput]
    intermediates: Mapping[str, Tensor] = MappingProxyType({})
    output: Callable[[Tensor], Tensor] = identity_output
    pointer: PointerOutput | None = None

    @property
    def logits(self) -> Float[Tensor, "row query vocab"]:
        """The output layer applied to `features`; with a pointer, log-probabilities of the mixture."""
        logits = self.output(self.features)
        return logits if self.pointer is None else self.pointer.mix(logits)


def attend_rows(
    attention: Attention,
    query: Float[Tensor, "row query width"],
    state: State,
    site: str,
    hooks: Hooks = NO_HOOKS,
) -> tuple[Float[Tensor, "row query out"], AttentionOutput, Carry]:
    """Attend with every row to the memory of its sentence; return the context, the output and the new carry.

    The rows of a sentence are folded into the query axis, so that they share its memory.
    """
    memory = state.memory[site]
    rows, steps, _ = query.shape
    sentences = memory.keep.shape[0]
    folded = query.reshape(sentences, -1, query.shape[-1])
    positions = (state.position + torch.arange(steps, device=query.device)).repeat(rows // max(sentences, 1))
    output, carry = attention(
        folded,
        memory,
        positions=positions.expand(sentences, -1),
        carry=state.carry.get(site, EMPTY),
        hooks=hooks,
    )
    output = _unfold_rows(output, rows, steps)
    return not_none(output.context), output, carry


def _unfold_rows(output: AttentionOutput, rows: int, steps: int) -> AttentionOutput:
    """Reshape the query axis of an output from (sentence, row x step) to (row, step)."""

    def unfold(t: Tensor) -> Tensor:
        return t.reshape(rows, steps, *t.shape[2:])

    return map_tensors(output, unfold)


def map_tensors(output: AttentionOutput, function: Callable[[Tensor], Tensor]) -> AttentionOutput:
    """Apply a function to every tensor of an output."""
    context, weights, scores, query, head_contexts = (
        None if t is None else function(t)
        for t in (output.context, output.weights, output.scores, output.query, output.head_contexts)
    )
    extras = {name: function(t) for name, t in output.extras.items()}
    return AttentionOutput(context, weights, scores, extras, query, head_contexts)


def concat_attention_outputs(attentions: list[AttentionOutput]) -> AttentionOutput:
    """Concatenate the attention outputs of single steps on the query axis.

    In self-attention each step has one more key than the step before; missing keys get zeros.
    """
    first, last = attentions[0], attentions[-1]

    def concat(name: str) -> Tensor | None:
        if getattr(first, name) is None:
            return None
        tensors = [not_none(getattr(output, name)) for output in attentions]
        if name in ("weights", "scores"):
            width = getattr(last, name).shape[-1]
            tensors = [nn.functional.pad(t, (0, width - t.shape[-1])) for t in tensors]
        return torch.cat(tensors, dim=1)

    return AttentionOutput(
        concat("context"),
        concat("weights"),
        concat("scores"),
        {name: torch.cat([output.extras[name] for output in attentions], dim=1) for name in first.extras},
        concat("query"),
        concat("head_contexts"),
    )


def step_loop(
    decoder: Callable[[State, Tensor, Hooks], DecoderOutput],
    state: State,
    ids: Int[Tensor, "row query"],
    hooks: Hooks,
) -> DecoderOutput:
    """Run a decoder one token at a time: each step depends on the attention of the step before."""
    steps: list[DecoderOutput] = []
    for t in range(ids.shape[1]):
        steps.append(decoder(state, ids[:, t : t + 1], hooks))
        state = steps[-1].state
    return concat_decoder_outputs(steps)


def concat_decoder_outputs(steps: list[DecoderOutput]) -> DecoderOutput:
    """Concatenate the outputs of single steps."""
    if len(steps) == 1:
        return steps[0]
    return DecoderOutput(
        torch.cat([s.features for s in steps], dim=1),
        steps[-1].state,
        {site: concat_attention_outputs([s.attentions[site] for s in steps]) for site in steps[0].attentions},
        {name: torch.cat([s.intermediates[name] for s in steps], dim=1) for name in steps[0].intermediates},
        steps[0].output,
        _concat_pointers([s.pointer for s in steps if s.pointer is not None]),
    )


def _concat_pointers(steps: list[PointerOutput]) -> PointerOutput | None:
    if not steps:
        return None
    weights, gates = (torch.cat([s[i] for s in steps], dim=1) for i in (0, 1))
    return PointerOutput(weights, gates, steps[0].ids)

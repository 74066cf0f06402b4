"""Probes of models that generate text: each decision is the next word at one step of an output.

The outputs are the model's own; words before the probed step are forced. What the model computes before the attention
is computed once, then the attention weights are replaced as often as a test needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from heedful.attention import AttentionOutput, Detail, Hooks, Override
from heedful.data.batch import Padded, Regions, TextBatch, pad
from heedful.data.tokenizer import END, START
from heedful.layers.state import DecoderOutput, PointerOutput, State
from heedful.models import Seq2Seq
from heedful.models.autoregressive import next_token_logits
from heedful.tasks.probes import (
    Decision,
    differentiable_output,
    frozen_weights,
    gradient_times_input,
    in_chunks,
    normalize_saliency,
)

PROBE_ROWS = 50  # sentences per batch of probes
PREDICT_ROWS = 200  # decisions per batch without gradients


@dataclass(frozen=True)
class NextWordProbe:
    """The next word at one step of several sentences; rows are sentences."""

    model: Seq2Seq
    state: State  # of the decoder before the step
    last: Tensor  # (row,): the token generated before the step
    site: str
    weights: Tensor  # (row, head, key)
    valid: Tensor  # (row, key): readable and no special token
    readable: Tensor  # (row, key): not masked
    probabilities: Tensor  # (row, word)
    items: list[int]  # the index of each sentence in the corpus
    step: int

    @property
    def token_weights(self) -> Tensor:
        return self.weights.mean(dim=1)

    def predict(self, weights: Tensor) -> Tensor:
        """Return the distributions of the next word under other weights, with gradients."""
        return in_chunks(weights, self._predict_chunk)

    def _predict_chunk(self, weights: Tensor) -> Tensor:
        rows, count = weights.shape[:2]

        def replace(site: str, attention: AttentionOutput, _: Tensor) -> Override | None:
            assert attention.weights is not None
            return Override(weights.to(attention.weights.dtype)) if site == self.site else None

        state, last = self.state.expand_to_beam(count), self.last.repeat_interleave(count)
        output = self.model.step(state, last, Hooks(Detail.NONE, edit=replace))
        return next_token_logits(output).softmax(dim=-1).view(rows, count, -1)


@dataclass(frozen=True)
class GeneratedCorpus:
    """Sources and the outputs that the model generated for them, as ids."""

    sources: Sequence[Sequence[int]]
    outputs: Sequence[Sequence[int]]

    def encode(self, rows: Sequence[int], sources: Sequence[Sequence[int]]) -> Padded | Regions:
        """Return `sources`, which replace the sources of `rows`, as model input."""
        return pad(sources)

    def batch(self, rows: Sequence[int]) -> TextBatch:
        """Return sources with the model's outputs as targets."""
        target = pad([[START, *self.outputs[row]] for row in rows])
        return TextBatch(self.encode(rows, [self.sources[row] for row in rows]), target)

    def special_positions(self, batch: TextBatch) -> Tensor:
        """Return which positions hold special tokens, here the end token: (row, key)."""
        lengths = batch.source.lengths
        return torch.arange(batch.source.keep.shape[1]) == (lengths - 1)[:, None]


class GenerationProbeTarget:
    """A model and the outputs that it generated: every next word is a decision."""

    decision_name, position_name, has_decisions = "next word", "source words", True
    model: Seq2Seq
    corpus: GeneratedCorpus

    @property
    def sources(self) -> Sequence[Sequence[int]]:
        return self.corpus.sources

    def sample_steps(self, per_item: int, seed: int) -> list[set[int]]:
        return sample_steps(self.corpus, per_item, seed)

    def probes(self, steps: Sequence[set[int]]) -> Iterator[NextWordProbe]:
        return next_word_probes(self.model, self.corpus, steps)

    def predict_from(self, decisions: Sequence[Decision], sources: Sequence[Sequence[int]]) -> Tensor:
        return predict_from(self.model, self.corpus, decisions, sources)

    def saliency(self, decisions: Sequence[Decision]) -> list[Tensor]:
        return source_saliency(self.model, self.corpus, decisions)


def sample_steps(corpus: GeneratedCorpus, per_item: int, seed: int) -> list[set[int]]:
    """Return up to `per_item` random steps of each output, never that of the end token."""
    rng = Generator().manual_seed(seed)
    steps = []
    for output in corpus.outputs:
        count = max(1, len(output) - 1)
        steps.append(set(torch.randperm(count, generator=rng)[:per_item].tolist()))
    return steps


def next_word_probes(
    model: Seq2Seq, corpus: GeneratedCorpus, steps: Sequence[set[int]], batch_size: int = PROBE_ROWS
) -> Iterator[NextWordProbe]:
    """Yield probes of the given steps; sentences of similar length share a batch."""
    assert model.alignment_site is not None
    order = sorted((i for i, item_steps in enumerate(steps) if item_steps), key=lambda i: len(corpus.sources[i]))
    for first in range(0, len(order), batch_size):
        yield from _batch_probes(model, corpus, steps, order[first : first + batch_size])


def _batch_probes(
    model: Seq2Seq, corpus: GeneratedCorpus, steps: Sequence[set[int]], rows: list[int]
) -> Iterator[NextWordProbe]:
    site = model.alignment_site
    assert site is not None
    outputs = pad([corpus.outputs[row] for row in rows]).ids
    batch = corpus.batch(rows)
    with torch.no_grad():
        state, _ = model.initial_state(batch)
    last = torch.full((len(rows),), model.start_token)
    readable = state.memory[site].keep
    valid = readable & ~corpus.special_positions(batch)
    hooks = Hooks(Detail.WEIGHTS, frozenset({site}))
    for t in range(max(max(steps[row], default=0) for row in rows) + 1):
        with torch.no_grad():
            output = model.step(state, last, hooks)
        probed = [i for i, row in enumerate(rows) if t in steps[row]]
        if probed:
            index = torch.tensor(probed)
            weights = output.attentions[site].weights
            assert weights is not None
            yield NextWordProbe(
                model=model,
                state=state.select(index, index),
                last=last[index],
                site=site,
                weights=weights[index, 0],
                valid=valid[index],
                readable=readable[index],
                probabilities=next_token_logits(output)[index].softmax(dim=-1).detach(),
                items=[rows[i] for i in probed],
                step=t,
            )
        state, last = output.state, outputs[:, t]


def predict_from(
    model: Seq2Seq, corpus: GeneratedCorpus, decisions: Sequence[Decision], sources: Sequence[Sequence[int]]
) -> Tensor:
    """Return the distribution (row, word) of each decision with another source in place of its own."""
    prefixes = [corpus.outputs[item][:step] for item, step in decisions]
    order = sorted(range(len(sources)), key=lambda i: (len(sources[i]), len(prefixes[i])))
    by_row: dict[int, Tensor] = {}
    for first in range(0, len(order), PREDICT_ROWS):
        rows = order[first : first + PREDICT_ROWS]
        target = pad([[START, *prefixes[row], END] for row in rows])
        with torch.no_grad():
            source = corpus.encode([decisions[row][0] for row in rows], [sources[row] for row in rows])
            output = model(TextBatch(source, target))
            next_steps = torch.tensor([len(prefixes[row]) for row in rows])
            probabilities = next_token_logits(select_steps(output, next_steps)).softmax(dim=-1)
        by_row.update(zip(rows, probabilities, strict=True))
    return torch.stack([by_row[row] for row in range(len(sources))])


def select_steps(output: DecoderOutput, steps: Tensor) -> DecoderOutput:
    """Return the output of one step per row; `steps` (row,) has the numbers of the steps."""
    rows = torch.arange(len(steps))
    pointer = output.pointer
    if pointer is not None:
        pointer = PointerOutput(pointer.weights[rows, steps][:, None], pointer.gate[rows, steps][:, None], pointer.ids)
    return output._replace(features=output.features[rows, steps][:, None], pointer=pointer)


def source_saliency(model: Seq2Seq, corpus: GeneratedCorpus, decisions: Sequence[Decision]) -> list[Tensor]:
    """Return `|sum_d x_id dP(y)/dx_id|` of every source position i for each decision, normalized to sum 1.

    y is the word that the model generated. Cross-attention weights are held constant.
    """
    steps: dict[int, list[int]] = {}
    for item, step in decisions:
        steps.setdefault(item, []).append(step)
    order = sorted(steps, key=lambda i: len(corpus.sources[i]))
    saliency: dict[Decision, Tensor] = {}
    for first in range(0, len(order), PROBE_ROWS):
        saliency.update(_batch_saliency(model, corpus, order[first : first + PROBE_ROWS], steps))
    return [saliency[decision] for decision in decisions]


def _batch_saliency(
    model: Seq2Seq, corpus: GeneratedCorpus, rows: list[int], steps: Mapping[int, list[int]]
) -> Iterator[tuple[Decision, Tensor]]:
    hooks = frozen_weights({site.id for site in model.sites if site.kind == "cross"})
    batch = corpus.batch(rows)
    assert batch.target is not None
    for number in range(max(len(steps[row]) for row in rows)):  # the number-th step of each row; the last repeats
        row_steps = torch.tensor([steps[row][min(number, len(steps[row]) - 1)] for row in rows])
        generated = batch.target.ids[torch.arange(len(rows)), row_steps + 1]
        with torch.enable_grad():  # a forward pass per step: fused layers allow one backward pass
            output, inputs = _forward_from_inputs(model, batch, hooks)
            p = next_token_logits(select_steps(output, row_steps)).softmax(dim=-1).gather(-1, generated[:, None])
            (gradient,) = torch.autograd.grad(p.sum(), inputs)
        importance = gradient_times_input(gradient, inputs)
        for batch_row, row in enumerate(rows):
            if number < len(steps[row]):
                row_importance = importance[batch_row, : len(corpus.sources[row])]
                yield (row, steps[row][number]), normalize_saliency(row_importance)


def _forward_from_inputs(model: Seq2Seq, batch: TextBatch, hooks: Hooks) -> tuple[DecoderOutput, Tensor]:
    """Return the output of a batch, and the source's embeddings or regions as a leaf tensor with gradients."""
    if isinstance(batch.source, Regions):
        regions = batch.source.vectors.detach().requires_grad_()
        return model(TextBatch(Regions(regions, batch.source.keep), batch.target), hooks), regions
    with differentiable_output(model.embedding) as leaves:  # the source is embedded first, the target later
        return model(batch, hooks), leaves[0]

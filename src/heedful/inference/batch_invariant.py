"""A model whose output for an input has the same bits in every batch.

Matrix products of one to three rows are computed by other code than larger ones, and round differently; so do sums over
rows that are padded to other lengths. Here every product has at least `MIN_ROWS` rows, some of which are copies, and
`widen` pads every source to a multiple of `WIDTH`. Batches must hold sources of one such width.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Int
from torch import Generator, Tensor, nn

from heedful.attention import NO_HOOKS, Hooks
from heedful.data.batch import Padded, Regions, TextBatch
from heedful.data.tokenizer import PAD
from heedful.layers.state import DecoderOutput, State
from heedful.models.autoregressive import AutoregressiveModel, InitialState, NextTokens
from heedful.trace.schema import Site

MIN_ROWS = 4  # from here on, a row of a product has the same bits whatever the number of rows (tests check it)
WIDTH = 16  # positions: a multiple of the vector length of every processor


def widened(length: int) -> int:
    """Return the number of positions that a source is padded to.

    >>> widened(5), widened(16), widened(17)
    (16, 16, 32)
    """
    return -(-max(length, 1) // WIDTH) * WIDTH


def widen(source: Padded) -> Padded:
    """Pad sources to the next multiple of `WIDTH`."""
    extra = widened(source.ids.shape[1]) - source.ids.shape[1]
    return Padded(nn.functional.pad(source.ids, (0, extra), value=PAD), nn.functional.pad(source.keep, (0, extra)))


class BatchInvariantModel(AutoregressiveModel):
    """A model in float32 whose products always have at least `MIN_ROWS` rows."""

    def __init__(self, model: AutoregressiveModel) -> None:
        self.model = model

    @property
    def sites(self) -> tuple[Site, ...]:
        return self.model.sites

    @property
    def alignment_site(self) -> str | None:
        return self.model.alignment_site

    @property
    def start_token(self) -> int:
        return self.model.start_token

    def initial_state(self, batch: TextBatch, hooks: Hooks = NO_HOOKS) -> InitialState:
        """Encode a batch with copies of its longest source: a product over one time step has enough rows, too."""
        size = batch.size
        longest = torch.full((MIN_ROWS - 1,), int(batch.source.lengths.argmax()))
        rows = torch.cat([torch.arange(size), longest])
        source = batch.source
        if isinstance(source, Regions):
            more: Padded | Regions = Regions(source.vectors[rows], source.keep[rows])
        else:
            more = Padded(source.ids[rows], source.keep[rows])
        state, attentions = self.model.initial_state(TextBatch(more), hooks)
        return state.select(rows[:size], rows[:size]), attentions

    def step(self, state: State, last: Int[Tensor, "row"], hooks: Hooks = NO_HOOKS) -> DecoderOutput:
        return self.model.step(state, last, hooks)

    def __call__(
        self, batch: TextBatch, hooks: Hooks = NO_HOOKS, scheduled_sampling: float = 0.0, rng: Generator | None = None
    ) -> DecoderOutput:
        return self.model(batch, hooks, scheduled_sampling, rng)

    def top_next_tokens(
        self, state: State, last: Int[Tensor, "row"], count: int, hooks: Hooks = NO_HOOKS
    ) -> NextTokens:
        """Feed each row's last token, in a batch of enough rows."""
        n_rows = len(last)
        if n_rows >= MIN_ROWS or not n_rows:
            return self.model.top_next_tokens(state, last, count, hooks)
        n_sentences = next((len(memory.keep) for memory in state.memory.values()), n_rows)
        beam = n_rows // n_sentences
        copies = -(-MIN_ROWS // beam) - n_sentences  # of the first sentence
        sentences = torch.cat([torch.arange(n_sentences), torch.zeros(copies, dtype=torch.long)])
        rows = (sentences[:, None] * beam + torch.arange(beam)).flatten()
        best = self.model.top_next_tokens(state.select(rows, sentences, beam), last[rows], count, hooks)
        kept = torch.arange(n_rows)
        return NextTokens(
            best.tokens[:n_rows],
            best.logp[:n_rows],
            best.state.select(kept, sentences[:n_sentences], beam),
            {
                site: replace(output, weights=output.weights[:n_rows]) if output.weights is not None else output
                for site, output in best.attentions.items()
            },
        )

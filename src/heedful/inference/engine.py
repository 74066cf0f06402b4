"""Inference engines: models that run a decoder step as one call into C, with int8 matrices.

For hooks that an engine does not support (they edit weights or record scores), the quantized model runs instead.
"""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Generator, Tensor

from heedful.attention import NO_HOOKS, Detail, Hooks
from heedful.data.batch import TextBatch
from heedful.inference.int8 import quantize
from heedful.layers.state import DecoderOutput, State
from heedful.models.autoregressive import AutoregressiveModel, InitialState
from heedful.models.seq2seq import Seq2Seq
from heedful.trace.schema import Site


def sentence_of_rows(rows: int, sentences: int) -> Int[Tensor, "row"]:
    """Return the sentence of each row: the rows of a sentence are consecutive.

    >>> sentence_of_rows(6, 2)
    tensor([0, 0, 0, 1, 1, 1])
    """
    return torch.arange(sentences).repeat_interleave(rows // sentences) if sentences else torch.arange(0)


def records_weights_only(hooks: Hooks) -> bool:
    """Return whether an engine can serve the hooks: they record at most weights and edit nothing."""
    return hooks.edit is None and hooks.detail is not Detail.FULL


class Engine(AutoregressiveModel):
    """A quantized model; subclasses add `top_next_tokens` and `generate_greedy` as single calls into C."""

    def __init__(self, model: Seq2Seq) -> None:
        self.model = quantize(model)

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
        return self.model.initial_state(batch, hooks)

    def step(self, state: State, last: Int[Tensor, "row"], hooks: Hooks = NO_HOOKS) -> DecoderOutput:
        return self.model.step(state, last, hooks)

    def __call__(
        self, batch: TextBatch, hooks: Hooks = NO_HOOKS, scheduled_sampling: float = 0.0, rng: Generator | None = None
    ) -> DecoderOutput:
        return self.model(batch, hooks, scheduled_sampling, rng)

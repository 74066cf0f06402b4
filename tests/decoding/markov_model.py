"""A model whose next token depends on the last token alone, so that every probability can be written down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from heedful.attention import NO_HOOKS, Hooks
from heedful.data.batch import TextBatch
from heedful.data.tokenizer import END, START
from heedful.layers.state import DecoderOutput, State
from heedful.models import AutoregressiveModel
from heedful.trace.schema import Site

A, B, C, D = 4, 5, 6, 7
VOCABULARY = 8


class MarkovModel(AutoregressiveModel):
    """`transitions[last][token]` is the probability of a token; tokens without a row are followed by the end token."""

    def __init__(self, transitions: Mapping[int, Mapping[int, float]]) -> None:
        self.logits = torch.full((VOCABULARY, VOCABULARY), float("-inf"))
        self.logits[:, END] = 0.0
        for last, row in transitions.items():
            self.logits[last] = float("-inf")
            for token, probability in row.items():
                self.logits[last, token] = torch.tensor(probability).log()

    @property
    def sites(self) -> tuple[Site, ...]:
        return ()

    @property
    def alignment_site(self) -> str | None:
        return None

    @property
    def start_token(self) -> int:
        return START

    def initial_state(self, batch: TextBatch, hooks: Hooks = NO_HOOKS) -> tuple[State, Mapping[str, Any]]:
        return State(hidden=(torch.zeros(batch.size, 1),)), {}

    def step(self, state: State, last: Tensor, hooks: Hooks = NO_HOOKS) -> DecoderOutput:
        return DecoderOutput(self.logits[last][:, None], state.advance(1), {})

    def __call__(self, batch: TextBatch, hooks: Hooks = NO_HOOKS, *_: Any, **__: Any) -> DecoderOutput:
        raise NotImplementedError("search runs step by step")

"""The interface of models that generate a sequence token by token; decoding and tracing use nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Generator, Tensor

from heedful import kernels
from heedful.attention import NO_HOOKS, AttentionOutput, Hooks
from heedful.data.batch import TextBatch
from heedful.data.tokenizer import PAD, START
from heedful.layers.state import DecoderOutput, State, identity_output
from heedful.trace.schema import Site

ShouldStop = Callable[[], bool]
"""Returns whether a generation is to end before its next step; it may raise an error instead."""


def never_stop() -> bool:
    """Let a generation run to its end."""
    return False


InitialState = tuple[State, Mapping[str, AttentionOutput]]
"""The state before the first token, and the encoder's attentions by site."""


class NextTokens(NamedTuple):
    """The most likely next tokens of each row, best first, and the state after the step."""

    tokens: Int[Tensor, "row best"]
    logp: Float[Tensor, "row best"]
    state: State
    attentions: Mapping[str, AttentionOutput]


class GreedyOutput(NamedTuple):
    """The greedy output of one sentence, `</s>` included if it was generated."""

    tokens: list[int]
    logp: list[float]  # per token
    attentions: Mapping[str, Float[Tensor, "step head key"]]


def next_token_logits(output: DecoderOutput) -> Float[Tensor, "row vocab"]:
    """Return the logits of the last step, with `<pad>` and `<s>` at -inf: they are never generated."""
    logits = output.logits[:, -1]
    if output.output is identity_output:  # the logits are the features: do not modify them in place
        logits = logits.clone()
    logits[:, PAD] = logits[:, START] = float("-inf")
    return logits


class AutoregressiveModel(ABC):
    """A model that generates a target sequence token by token, given a source.

    `initial_state` encodes a batch, `step` feeds one token per row, and calling the model runs all steps of given
    targets (teacher forcing). Models with faster implementations override `top_next_tokens` and `generate_greedy`.
    """

    @property
    @abstractmethod
    def sites(self) -> tuple[Site, ...]:
        """Every attention of the model."""

    @property
    @abstractmethod
    def alignment_site(self) -> str | None:
        """The site whose weights serve as the alignment by default; None without attention."""

    @property
    @abstractmethod
    def start_token(self) -> int:
        """The id fed into the first step."""

    @abstractmethod
    def initial_state(self, batch: TextBatch, hooks: Hooks = NO_HOOKS) -> InitialState:
        """Encode the source; return the state before the first token and the encoder's attentions."""

    @abstractmethod
    def step(self, state: State, last: Int[Tensor, "row"], hooks: Hooks = NO_HOOKS) -> DecoderOutput:
        """Feed each row's last token; return the output of one step."""

    @abstractmethod
    def __call__(
        self, batch: TextBatch, hooks: Hooks = NO_HOOKS, scheduled_sampling: float = 0.0, rng: Generator | None = None
    ) -> DecoderOutput:
        """Run all steps of the batch's targets (teacher forcing)."""

    def top_next_tokens(
        self, state: State, last: Int[Tensor, "row"], count: int, hooks: Hooks = NO_HOOKS
    ) -> NextTokens:
        """Feed each row's last token; return its `count` most likely successors."""
        output = self.step(state, last, hooks)
        logits = next_token_logits(output)
        logp, tokens = kernels.top_k(logits, min(count, logits.shape[-1]))
        return NextTokens(tokens, logp, output.state, output.attentions)

    def generate_greedy(
        self, state: State, max_length: int, hooks: Hooks = NO_HOOKS, should_stop: ShouldStop = never_stop
    ) -> GreedyOutput | None:
        """Return the whole greedy output of a single sentence; None if the model can only decode step by step.

        `should_stop` is called every few steps: if it returns True, the tokens so far are returned.
        """
        del state, max_length, hooks, should_stop
        return None

"""The interface of decoders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from jaxtyping import Int
from torch import Tensor, nn

from heedful.attention import Hooks
from heedful.layers.state import DecoderOutput, EncoderOutput, State, step_loop
from heedful.trace.schema import Site


class Decoder(nn.Module, ABC):
    """A decoder: takes target tokens and returns the features from which the output layer computes logits."""

    __call__: Callable[..., DecoderOutput]

    @property
    @abstractmethod
    def feature_width(self) -> int:
        """The width of the features."""

    @property
    @abstractmethod
    def sites(self) -> tuple[Site, ...]:
        """Every attention of the decoder."""

    @property
    @abstractmethod
    def alignment_site(self) -> str | None:
        """The site whose weights serve as the alignment by default; None without attention."""

    @property
    def alignment_shift(self) -> int:
        """The number of steps after which a query first depends on the token that a step generates."""
        return 1

    @property
    @abstractmethod
    def parallel(self) -> bool:
        """Whether all tokens can be fed in one call: no step depends on the attention of the step before."""

    @abstractmethod
    def initial_state(self, encoder_output: EncoderOutput) -> State:
        """Return the state before the first token."""

    @abstractmethod
    def decode(self, state: State, ids: Int[Tensor, "row query"], hooks: Hooks) -> DecoderOutput:
        """Feed tokens in one call: a single step, or any number of steps if the decoder is parallel."""

    def decode_steps(self, state: State, ids: Int[Tensor, "row query"], hooks: Hooks) -> DecoderOutput:
        """Feed several tokens to a decoder that is not parallel."""
        return step_loop(self.decode, state, ids, hooks)

    def forward(self, state: State, ids: Int[Tensor, "row query"], hooks: Hooks) -> DecoderOutput:
        """Feed tokens, in one call if possible."""
        one_call = self.parallel or ids.shape[1] == 1
        return self.decode(state, ids, hooks) if one_call else self.decode_steps(state, ids, hooks)

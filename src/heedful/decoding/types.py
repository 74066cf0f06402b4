"""The results of a search."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from jaxtyping import Float
from torch import Tensor

from heedful.data.tokenizer import END

if TYPE_CHECKING:
    from heedful.decoding.beam import BeamSearch


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One output: its tokens (with the end token, if it was reached), log-probabilities and attention weights."""

    tokens: tuple[int, ...]
    logp: float
    score: float  # beam search: Wu 2016, eq. 14; otherwise `logp`
    token_logp: tuple[float, ...]
    finished: bool
    attentions: Mapping[str, Float[Tensor, "query head key"]] = field(default_factory=dict)  # unpadded

    @property
    def confidence(self) -> float:
        """The geometric mean of the probabilities of its tokens."""
        return min(1.0, math.exp(self.logp / max(1, len(self.tokens))))

    @classmethod
    def from_steps(
        cls,
        tokens: tuple[int, ...],
        token_logp: tuple[float, ...],
        attentions: Mapping[str, Tensor],
        score: float | None = None,
    ) -> Hypothesis:
        """Make a hypothesis from its steps; without `score` it is ranked by its log-probability."""
        logp = sum(token_logp)
        return cls(tokens, logp, logp if score is None else score, token_logp, tokens[-1] == END, attentions)


class SearchResult(NamedTuple):
    """The hypotheses of every sentence of a batch, best first."""

    hypotheses: list[list[Hypothesis]]
    encoder_attentions: list[Mapping[str, Tensor]]  # per sentence: site -> (query, head, key), unpadded
    beam: BeamSearch | None = None  # every step of a beam search

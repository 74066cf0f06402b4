"""The outputs of a search and their scores; independent of what computes them (PyTorch or NumPy)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from heedful.data.tokenizer import END
from heedful.errors import DecodingError

IMPOSSIBLE = float("-inf")


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One output: its tokens (with the end token, if it was reached), log-probabilities and attention weights."""

    tokens: tuple[int, ...]
    logp: float
    score: float  # beam search: Wu 2016, eq. 14; otherwise `logp`
    token_logp: tuple[float, ...]
    finished: bool
    attentions: Mapping[str, Any] = field(default_factory=dict)  # site -> tensor or array (query, head, key), unpadded

    @property
    def confidence(self) -> float:
        """The geometric mean of the probabilities of its tokens."""
        return min(1.0, math.exp(self.logp / max(1, len(self.tokens))))

    @classmethod
    def from_steps(
        cls,
        tokens: tuple[int, ...],
        token_logp: tuple[float, ...],
        attentions: Mapping[str, Any],
        score: float | None = None,
    ) -> Hypothesis:
        """Make a hypothesis from its steps; without `score` it is ranked by its log-probability."""
        logp = sum(token_logp)
        return cls(tokens, logp, logp if score is None else score, token_logp, tokens[-1] == END, attentions)


def length_penalty(length: int, exponent: float) -> float:
    """Return `((5 + |Y|) / 6) ** exponent` (Wu 2016, eq. 14).

    >>> length_penalty(1, 0.6), round(length_penalty(13, 1.0), 2)
    (1.0, 3.0)
    """
    return float(((5 + length) / 6) ** exponent)


def check_finite(logp: Sequence[float], step: int) -> None:
    """Raise DecodingError if the most likely token of a row has no finite log-probability."""
    if not all(map(math.isfinite, logp)):
        raise DecodingError(
            f"the model's output is not finite in step {step + 1:,}; its weights are damaged, or its learning rate was"
            " too high"
        )

"""Perplexity of a corpus, by position in the sentence, and in bits per character."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError
from heedful.metrics.state import Counts, Metric, MetricSpec, MetricState

Nats = NDArray[np.float64]  # -ln p of each token of a sentence, with its end token
POSITION_BOUNDS = (0, 1, 2, 3, 5, 10, 15, 20, 30, 40)
MAX_EXPONENT = 700  # exp overflows beyond it


class PerplexityBin(NamedTuple):
    """The tokens at positions `low` to `high` of their lines, counted from 1; None: no upper bound."""

    low: int
    high: int | None
    tokens: int
    perplexity: float


def perplexity_state(sentences: Sequence[Nats], protocol: str) -> MetricState:
    """Return the nats and tokens of each sentence; `protocol` says how they were scored.

    >>> state = perplexity_state([np.log([2.0, 8.0]), np.log([4.0])], "sentences")
    >>> state.metric().value, state.signature
    (4.0, 'log:e|tokens:3|end:counted|protocol:sentences')
    """
    if not sentences:
        raise DataError("perplexity of no sentences: expected at least 1")
    rows = np.array([[nats.sum(), len(nats)] for nats in sentences], dtype=np.float64)
    signature = f"log:e|tokens:{int(rows[:, 1].sum())}|end:counted|protocol:{protocol}"
    return MetricState("perplexity", rows, _perplexity, signature)


def _perplexity(total: Counts) -> float:
    mean = float(total[0]) / max(1.0, float(total[1]))
    return math.inf if mean > MAX_EXPONENT else math.exp(mean)


def _bits_state(sentences: Sequence[Nats], lines: Sequence[str], protocol: str) -> MetricState:
    rows = [[nats.sum() / math.log(2), len(line) + 1] for nats, line in zip(sentences, lines, strict=True)]
    counts = np.array(rows, dtype=np.float64)
    signature = f"log:2|characters:{int(counts[:, 1].sum())}|end:counted|protocol:{protocol}"
    return MetricState("bits per character", counts, lambda total: float(total[0] / total[1]), signature)


PERPLEXITY = MetricSpec(
    "perplexity",
    perplexity_state,
    "exp of the mean negative log-probability per token",
    higher_is_better=False,
    takes_text=False,
)
BITS_PER_CHARACTER = MetricSpec(
    "bits-per-character",
    _bits_state,
    "negative log2-probability per character",
    higher_is_better=False,
    takes_text=False,
)


def perplexity(total_logp: float, tokens: int) -> Metric:
    """Return `exp(-total_logp / tokens)` for natural logarithms summed over all tokens, end tokens included.

    Only models that predict the same tokens are comparable.

    >>> perplexity(4 * math.log(0.25), 4).value
    4.0
    """
    if tokens < 1:
        raise DataError(f"perplexity of {tokens} tokens: expected at least 1")
    if total_logp > 1e-6 * tokens:  # rounding may put a certain model slightly above 0
        raise DataError(
            f"total_logp = {total_logp}: a sum of log-probabilities is at most 0 (a loss has the other sign)"
        )
    value = _perplexity(np.array([-total_logp, tokens], dtype=np.float64))
    return Metric("perplexity", value, f"log:e|tokens:{tokens}", PERPLEXITY.higher_is_better)


def bits_per_character(sentences: Sequence[Nats], lines: Sequence[str], protocol: str) -> Metric:
    """Return the bits per character of the lines; the end of a line counts as one character.

    >>> bits_per_character([np.log([2.0, 2.0])], ["a"], "sentences").value
    1.0
    """
    return BITS_PER_CHARACTER(sentences, lines, protocol)


def perplexity_by_position(sentences: Sequence[Nats], bounds: Sequence[int] = POSITION_BOUNDS) -> list[PerplexityBin]:
    """Return the perplexity by position in the sentence; bins without tokens are left out.

    >>> for b in perplexity_by_position([np.log([2.0, 8.0]), np.log([8.0])], bounds=(0, 1)):
    ...     print(b.low, b.high, b.tokens, round(b.perplexity, 6))
    1 1 2 4.0
    2 None 1 8.0
    """
    bins = []
    for below, high in [*pairwise(bounds), (bounds[-1], None)]:
        parts = [nats[below:high] for nats in sentences if len(nats) > below]
        if parts:
            nats = np.concatenate(parts)
            value = _perplexity(np.array([nats.sum(), len(nats)]))
            bins.append(PerplexityBin(below + 1, high, len(nats), value))
    return bins

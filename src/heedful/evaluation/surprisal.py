"""How well a text was foreseen: perplexity as a tally of sentences, by place in the sentence, in bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError
from heedful.evaluation.rates import perplexity
from heedful.evaluation.tally import Metric, Tally

Nats = NDArray[np.float64]  # -log p of the tokens of one sentence, its end among them
PLACES = (0, 1, 2, 3, 5, 10, 15, 20, 30, 40)  # upper bounds of places in the sentence


class PositionBucket(NamedTuple):
    """The tokens at places `low` to `high` of their lines, counted from 1; an open last one has no `high`."""

    low: int
    high: int | None
    tokens: int
    perplexity: float


def perplexity_tally(sentences: Sequence[Nats], protocol: str) -> Tally:
    """Perplexity over these sentences, one row each: nats and tokens. `protocol` says how they were read.

    >>> tally = perplexity_tally([np.log([2.0, 8.0]), np.log([4.0])], "sentences")
    >>> tally.metric().value, tally.signature
    (4.0, 'log:e|tokens:3|end:counted|protocol:sentences')
    """
    if not sentences:
        raise DataError("perplexity of no sentences: expected at least 1")
    rows = np.array([[nats.sum(), len(nats)] for nats in sentences], dtype=np.float64)
    total = rows.sum(axis=0)
    one = perplexity(-float(total[0]), int(total[1]))
    signature = f"{one.signature}|end:counted|protocol:{protocol}"
    return Tally(one.name, rows, _perplexity, signature, higher_is_better=False)


def _perplexity(total: NDArray[np.float64]) -> float:
    return perplexity(-float(total[0]), max(1, int(total[1]))).value


def bits_per_character(sentences: Sequence[Nats], lines: Sequence[str], protocol: str) -> Metric:
    """Bits for each character of the lines, the end of a line counted as one.

    >>> bits_per_character([np.log([2.0, 2.0])], ["a"], "sentences").value
    1.0
    """
    characters = sum(len(line) + 1 for line in lines)
    bits = sum(float(nats.sum()) for nats in sentences) / math.log(2)
    signature = f"log:2|characters:{characters}|end:counted|protocol:{protocol}"
    return Metric("bits per character", bits / characters, signature, higher_is_better=False)


def by_position(sentences: Sequence[Nats], bounds: Sequence[int] = PLACES) -> list[PositionBucket]:
    """Perplexity by the place in the sentence; a place nothing falls in is left out.

    >>> for place in by_position([np.log([2.0, 8.0]), np.log([8.0])], bounds=(0, 1)):
    ...     print(place.low, place.high, place.tokens, round(place.perplexity, 6))
    1 1 2 4.0
    2 None 1 8.0
    """
    found = []
    for below, high in [*pairwise(bounds), (bounds[-1], None)]:
        parts = [nats[below:high] for nats in sentences if len(nats) > below]
        if parts:
            inside = np.concatenate(parts)
            value = perplexity(-float(inside.sum()), len(inside)).value
            found.append(PositionBucket(below + 1, high, len(inside), value))
    return found

"""The weight of a single decision on its gold words, for tasks that attend once per item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from heedful.errors import DataError
from heedful.trace.schema import Links, fold_words


class PositionWeights(NamedTuple):
    """The weights of an item's positions, mean over heads, and the word of each position."""

    weights: np.ndarray
    words: list[int]


def score_gold_words(items: Sequence[PositionWeights], gold: Sequence[Links]) -> dict[str, float]:
    """Return the weight on gold words, that of uniform weights, and how often the largest weight is on a gold word."""
    mass, uniform, hits = [], [], []
    for item, links in zip(items, gold, strict=True):
        words = fold_words(item.weights[None], item.words, [0])[0]
        gold_words = sorted({s for s, _ in links.possible if s < len(words)})
        if gold_words and len(words):
            mass.append(float(words[gold_words].sum()))
            uniform.append(len(gold_words) / len(words))
            hits.append(int(words.argmax()) in gold_words)
    if not mass:
        raise DataError("none of these items has a gold word")
    return {
        "gold_weight": float(np.mean(mass)),
        "gold_weight_uniform": float(np.mean(uniform)),
        "largest_weight_is_gold": float(np.mean(hits)),
    }

"""From pieces to words, and how spread out weights are: for traces, pictures and measures alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
NO_WORD = -1


def fold(matrix: Array, rows: Sequence[Sequence[int]], columns: Sequence[Sequence[int]]) -> Array:
    """Weights between groups of positions: the sum over what is read, the mean over what asks.

    >>> fold(np.array([[0.2, 0.3, 0.5], [0.4, 0.4, 0.2]]), [[0, 1]], [[0, 1], [2]]).round(2)
    array([[0.65, 0.35]])
    """
    into = np.zeros((matrix.shape[1], len(columns)))
    for number, group in enumerate(columns):
        into[list(group), number] = 1
    mean = np.zeros((len(rows), matrix.shape[0]))
    for number, group in enumerate(rows):
        mean[number, list(group)] = 1 / len(group)
    return np.asarray(mean @ matrix @ into)


def folded_words(matrix: Array, source: Sequence[int], target: Sequence[int]) -> Array:
    """Weights between words (target, source), given the word of each position; what has none is left out."""
    return fold(matrix, _by_word(target), _by_word(source))


def _by_word(words: Sequence[int]) -> list[list[int]]:
    groups: list[list[int]] = [[] for _ in range(max(words, default=NO_WORD) + 1)]
    for at, word in enumerate(words):
        if word != NO_WORD:
            groups[word].append(at)
    return groups


def entropy_ratio(weights: Array) -> Array:
    """Of each row, its entropy over that of uniform weights: 0 where one has all, 1 where all are alike.

    >>> entropy_ratio(np.array([[0.5, 0.5], [1.0, 0.0]])).round(6)
    array([1., 0.])
    """
    rows = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)
    spread = (rows * -np.log(np.maximum(rows, 1e-300))).sum(axis=1)
    return np.asarray(spread / np.log(max(2, weights.shape[1])))

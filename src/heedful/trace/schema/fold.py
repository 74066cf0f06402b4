"""From subwords to words, and the entropy of attention weights: shared by traces, figures and measures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
NO_WORD = -1  # the word index of tokens outside every word, such as the end token


def fold(matrix: Array, rows: Sequence[Sequence[int]], columns: Sequence[Sequence[int]]) -> Array:
    """Return the weights between groups of positions: summed over keys, averaged over queries.

    `matrix` is (query, key); `rows` and `columns` list the positions of each group. A group without positions has
    weight 0.

    >>> fold(np.array([[0.2, 0.3, 0.5], [0.4, 0.4, 0.2]]), [[0, 1]], [[0, 1], [2]]).round(2)
    array([[0.65, 0.35]])
    """
    by_row = np.zeros((len(rows), matrix.shape[1]))
    for index, group in enumerate(rows):
        if group:
            by_row[index] = matrix[list(group)].sum(axis=0) / len(group)
    folded = np.zeros((len(rows), len(columns)))
    for index, group in enumerate(columns):
        folded[:, index] = by_row[:, list(group)].sum(axis=1)
    return folded


def fold_words(matrix: Array, source: Sequence[int], target: Sequence[int]) -> Array:
    """Return the weights between words (target, source), given the word index of each position.

    Positions whose index is `NO_WORD` are left out.
    """
    return fold(matrix, _positions_by_word(target), _positions_by_word(source))


def _positions_by_word(words: Sequence[int]) -> list[list[int]]:
    groups: list[list[int]] = [[] for _ in range(max(words, default=NO_WORD) + 1)]
    for position, word in enumerate(words):
        if word != NO_WORD:
            groups[word].append(position)
    return groups


def entropy_ratio(weights: Array) -> Array:
    """Return each row's entropy divided by that of uniform weights: 0 is one-hot, 1 is uniform.

    >>> entropy_ratio(np.array([[0.5, 0.5], [1.0, 0.0]])).round(6)
    array([1., 0.])
    """
    rows = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)
    entropy = (rows * -np.log(np.maximum(rows, 1e-300))).sum(axis=1)
    return np.asarray(entropy / np.log(max(2, weights.shape[1])))

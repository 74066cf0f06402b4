"""Pretrained word vectors: GloVe's text format, or fastText's .vec with its header."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.data.lines import EXCERPT_LENGTH, read_lines
from heedful.errors import DataError

MAX_DIGITS = 18  # of a number in fastText's header
Vector = npt.NDArray[np.float32]


class WordVectors(NamedTuple):
    """The vectors of the words that are in the file, and their width."""

    vectors: dict[str, Vector]
    width: int


def read_vectors(path: Path, words: Set[str]) -> WordVectors:
    """Read the vectors of these words; if a word occurs twice, its first vector counts. Every line is checked.

    Numbers are separated by single spaces; everything before the last `width` of them is the word, so a word may
    contain spaces (some of GloVe's do).
    """
    vectors: dict[str, Vector] = {}
    width = 0
    for number, line in enumerate(read_lines(path), 1):
        cells = line.rstrip(" ").split(" ")
        if number == 1 and len(cells) == 2 and all(cell.isdecimal() and len(cell) <= MAX_DIGITS for cell in cells):
            width = int(cells[1])  # fastText's header: number of words, width
            continue
        if not width:
            width = len(cells) - 1
        if len(cells) <= width or width < 1:
            raise DataError(
                f"{path}, line {number}: expected a word and {max(width, 1)} numbers, found"
                f" {len(cells)} parts: {line[:EXCERPT_LENGTH]!r}"
            )
        word = " ".join(cells[:-width])
        if word in words and word not in vectors:
            vectors[word] = _parse_numbers(cells[-width:], path, number)
    if not width:
        raise DataError(f"{path}: contains no word vectors")
    return WordVectors(vectors, width)


def _parse_numbers(cells: list[str], path: Path, number: int) -> Vector:
    try:
        with np.errstate(over="ignore"):  # becomes infinite, which is an error below
            vector = np.array(cells, dtype=np.float32)
    except ValueError:
        bad = next(cell for cell in cells if not _is_number(cell))
        raise DataError(f"{path}, line {number}: {bad!r} is not a number") from None
    if not np.isfinite(vector).all():
        raise DataError(f"{path}, line {number}: contains a number that is not finite")
    return vector


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True

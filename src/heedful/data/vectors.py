"""Word vectors from a file: GloVe's text (a word, its numbers) or fastText's .vec (below a line of sizes)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.data.readers import text_lines
from heedful.errors import DataError

Vector = npt.NDArray[np.float32]


class Found(NamedTuple):
    """The vectors of those words that were asked for and are in the file."""

    vectors: Mapping[str, Vector]
    width: int


def read_vectors(path: Path, wanted: set[str]) -> Found:
    """Read the vectors of these words; of a word that occurs twice, the first. Every line is counted out.

    Numbers stand between single spaces; what is before the last `width` of them is the word, so that a word
    may hold spaces itself (some of GloVe's do).
    """
    found: dict[str, Vector] = {}
    width = 0
    for number, line in enumerate(text_lines(path), 1):
        cells = line.rstrip(" ").split(" ")
        if number == 1 and len(cells) == 2 and all(cell.isdecimal() for cell in cells):
            width = int(cells[1])  # fastText's first line: how many words, how many numbers
            continue
        if not width:
            width = len(cells) - 1
        if len(cells) <= width or width < 1:
            raise DataError(
                f"{path}, line {number}: expected a word and {max(width, 1)} numbers, found"
                f" {len(cells)} parts: {line[:60]!r}"
            )
        word = " ".join(cells[:-width])
        if word in wanted and word not in found:
            found[word] = _numbers(cells[-width:], path, number)
    if not width:
        raise DataError(f"{path}: no word vectors in it")
    return Found(found, width)


def _numbers(cells: list[str], path: Path, number: int) -> Vector:
    try:
        vector = np.array(cells, dtype=np.float32)
    except ValueError:
        wrong = next(cell for cell in cells if not _is_number(cell))
        raise DataError(f"{path}, line {number}: {wrong!r} is not a number") from None
    if not np.isfinite(vector).all():
        raise DataError(f"{path}, line {number}: a number that is not finite")
    return vector


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True

"""Links of training examples, and the attention weights that they ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from heedful.config import DataConfig
from heedful.data.batch import Guide
from heedful.data.lines import BadLine, iter_lines, parse_column
from heedful.data.pairs import Links, NumberedPair, TextPair
from heedful.data.ragged import Array, Ragged
from heedful.data.tables import Table
from heedful.errors import DataError
from heedful.trace.schema.links import MAX_WORD, parse_links

MAX_DIGITS = 9  # of the number of a word


class LinkRows:
    """The links of many examples, 8 bytes each."""

    def __init__(self, links: Iterable[Links | None]) -> None:
        flat, ends = [np.zeros(0, dtype=np.int32)], [0]
        for row in links:
            flat.append(np.array(row or (), dtype=np.int32).reshape(-1))
            ends.append(ends[-1] + len(flat[-1]))
        self._rows = Ragged(np.concatenate(flat), np.array(ends))
        self.count = int(ends[-1]) // 2

    def __len__(self) -> int:
        return len(self._rows.ends) - 1

    def __getitem__(self, row: int) -> Array:
        """Return the links of an example, (link, side)."""
        ids, ends = self._rows
        return ids[ends[row] : ends[row + 1]].reshape(-1, 2)


class ExampleWords(NamedTuple):
    """The word of each token of both sides; negative: of no word."""

    source: Sequence[int]
    target: Sequence[int]


def make_guide(links: Sequence[Array], words: Sequence[ExampleWords], weight: float) -> Guide:
    """Return the weights that links between words ask of attention between tokens.

    The tokens of a target word share its links; the weight of 1 is divided evenly among all tokens of the source words
    that it is linked to (Chen 2016). A target word without links asks for nothing. Links to words that do not exist,
    because an example was cut, are ignored.

    >>> links = [np.array([[0, 0], [1, 0]])]  # both source words belong to the first target word
    >>> make_guide(links, [ExampleWords([0, 1, 1, -1], [0, 0, 1])], 1.0).target
    tensor([[[0.3333, 0.3333, 0.3333, 0.0000],
             [0.3333, 0.3333, 0.3333, 0.0000],
             [0.0000, 0.0000, 0.0000, 0.0000]]])
    """
    steps, width = (max((len(example[side]) for example in words), default=0) for side in (1, 0))
    target = np.zeros((len(words), steps, width), dtype=np.float32)
    for matrix, example_links, (source_words, target_words) in zip(target, links, words, strict=True):
        sizes = max(target_words, default=-1) + 1, max(source_words, default=-1) + 1
        linked = np.zeros((max(0, sizes[0]) + 1, max(0, sizes[1]) + 1), dtype=np.float32)  # the last ones: of no word
        inside = (example_links[:, 0] < sizes[1]) & (example_links[:, 1] < sizes[0])
        linked[example_links[inside, 1], example_links[inside, 0]] = 1.0
        matrix[: len(target_words), : len(source_words)] = linked[np.ix_(list(target_words), list(source_words))]
    return Guide(torch.from_numpy(target / np.maximum(target.sum(axis=-1, keepdims=True), 1.0)), weight)


def read_link_lines(path: Path) -> list[str]:
    """Return the lines of a file of links, one per row of the training data."""
    lines: list[str] = []
    for line in iter_lines(path):
        if isinstance(line, BadLine):
            raise DataError(str(line))
        lines.append(line)
    return lines


def read_link_column(path: Path, column: str, data: DataConfig) -> list[str]:
    """Return the cells of a column of the training table, one per row."""
    name = parse_column(column) or column
    table = Table(path, ("links",), data, [name], required=0, setting="training.guided.column")
    return [row.texts[0] if not isinstance(row, BadLine) and row is not None else "" for row in table]


def parse_rationale(line: str, base: int = 0) -> Links:
    """Return links from the words of a text to its label, given their numbers from `base`.

    >>> parse_rationale("3 4")
    ((3, 0), (4, 0))
    """
    cells = line.split()
    if not all(cell.isdecimal() and len(cell) <= MAX_DIGITS and base <= int(cell) <= MAX_WORD for cell in cells):
        raise DataError(f'expected numbers of words from {base}, such as 3 4, found "{line[:60]}"')
    return tuple((int(cell) - base, 0) for cell in cells)


def parse_pharaoh(line: str) -> Links:
    """Return all links of a line, sure and possible ones, in order."""
    return tuple(sorted(parse_links(line).possible))


def attach_links(
    pairs: Iterable[NumberedPair], lines: Sequence[str], name: str, rationales: bool
) -> Iterator[TextPair]:
    """Yield the pairs with the links of the lines of their rows; pairs of extra files have none."""
    parse = parse_rationale if rationales else parse_pharaoh
    for numbered in pairs:
        if numbered.row is None:
            yield numbered.pair
            continue
        if numbered.row >= len(lines):
            raise DataError(
                f"{name}: has {len(lines):,} lines, but the training data has at least {numbered.row + 1:,} rows"
            )
        try:
            yield numbered.pair._replace(links=parse(lines[numbered.row]))
        except DataError as error:
            raise DataError(f"{name}, line {numbered.row + 1}: {error}") from None

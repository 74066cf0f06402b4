"""Word links: Pharaoh files, and from weights to links."""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np

from heedful.errors import DataError
from heedful.record.fold import Array, folded_words
from heedful.record.trace import Gold, Trace

Link = tuple[int, int]  # source word, target word, from 0
Reading = Literal["naive", "shift", "shared"]
READINGS: tuple[Reading, ...] = get_args(Reading)


class Links(NamedTuple):
    """A sentence's links; possible ones include the sure."""

    sure: frozenset[Link]
    possible: frozenset[Link]

    def gold(self) -> Gold:
        return Gold(sure=sorted(self.sure), possible=sorted(self.possible))


def graded(links: Iterable[Link]) -> Links:
    """Links of words to groups of words ("looks for" to "cherche") are possible, those of one to one sure.

    >>> sorted(graded([(0, 0), (1, 1), (2, 1)]).sure)
    [(0, 0)]
    """
    every = frozenset(links)
    sources, targets = (Counter(link[side] for link in every) for side in (0, 1))
    return Links(frozenset(link for link in every if sources[link[0]] == targets[link[1]] == 1), every)


def parse_links(line: str, base: int = 0) -> Links:
    """
    >>> links = parse_links("0-0 1p2")
    >>> sorted(links.sure), sorted(links.possible)
    ([(0, 0)], [(0, 0), (1, 2)])
    """
    sure, possible = set(), set()
    for text in line.split():
        mark = "p" if "p" in text else "-"
        left, _, right = text.partition(mark)
        try:
            link = int(left) - base, int(right) - base
        except ValueError:
            raise DataError(f'"{text}": expected a link such as 3-4, or 3p4 for a possible one') from None
        if min(link) < 0:
            raise DataError(f'"{text}": counts from {link[0] + base}, but words count from {base} here')
        possible.add(link)
        if mark == "-":
            sure.add(link)
    return Links(frozenset(sure), frozenset(possible))


def read_links(path: Path, base: int = 0) -> list[Links]:
    """One line a sentence."""
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8") as file
        ):
            lines = file.read().splitlines()
    except (OSError, EOFError) as error:
        what = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: cannot be read: {what}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8 text") from None
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(parse_links(line, base))
        except DataError as error:
            raise DataError(f"{path}, line {number}: {error}") from None
    return found


def pharaoh(links: Iterable[Link]) -> str:
    """
    >>> pharaoh([(1, 0), (0, 0)])
    '0-0 1-0'
    """
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def trace_links(
    trace: Trace, how: Reading = "naive", site: str | None = None, head: int | None = None
) -> set[Link]:
    """For each output word the source word that its weights favour."""
    words = [[token.word for token in side.tokens] for side in (trace.source, trace.target)]
    return word_links(trace.matrix(site, head), words[0], words[1], how, trace.shift)


def word_links(
    matrix: Array, source: Sequence[int], target: Sequence[int], how: Reading = "naive", shift: int = 0
) -> set[Link]:
    """From weights (step, position) to links of words: pieces folded, what belongs to no word left out.

    `naive`: a word is read at the step that wrote it. `shift`: so many steps later, when a query has read it;
    the last words of an output may have no such step, and are read at the last. `shared`: as `naive`, but
    what a source word got in all is shared out, so that one that is looked at all the time is no favourite.

    >>> weights = np.array([[0.5, 0.4, 0.1], [0.7, 0.1, 0.2]])  # the first word is always looked at
    >>> sorted(word_links(weights, [0, 1, 2], [0, 1]))
    [(0, 0), (0, 1)]
    >>> sorted(word_links(weights, [0, 1, 2], [0, 1], "shared"))
    [(1, 0), (2, 1)]
    """
    later = np.minimum(np.arange(len(matrix)) + (shift if how == "shift" else 0), len(matrix) - 1)
    folded = folded_words(matrix[later], source, target)
    if not folded.size:
        return set()
    if how == "shared":
        folded = folded / np.maximum(folded.sum(axis=0), 1e-12)
    return {(int(row.argmax()), word) for word, row in enumerate(folded)}


def to_csv(trace: Trace, site: str | None = None, *, words: bool = True) -> str:
    """One row an output word, one column a source word."""
    table = trace.table(site, words=words)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["", *table.columns])
    for label, row in zip(table.rows, table.weights, strict=True):
        writer.writerow([label, *(f"{weight:.6g}" for weight in row)])
    return out.getvalue()


def to_npz(trace: Trace, path: Path) -> None:
    """Every array of the trace by name, with the tokens of both sides."""
    arrays = {name.replace("/", "."): tensor.array() for name, tensor in trace.tensors.items()}
    source = np.array([token.text for token in trace.source.tokens])
    target = np.array([token.text for token in trace.target.tokens])
    np.savez(path, source_tokens=source, target_tokens=target, **arrays)  # type: ignore[arg-type]

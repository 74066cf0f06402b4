"""Word alignment links: Pharaoh files, and links derived from attention weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np

from heedful.errors import DataError, TraceError
from heedful.trace.schema.file import read_within
from heedful.trace.schema.fold import Array, fold_words
from heedful.trace.schema.side import Gold
from heedful.trace.schema.trace import Trace

Link = tuple[int, int]  # source word, target word, from 0
MAX_BYTES = 256_000_000  # of a file of links, decompressed
MAX_WORD = 1_000_000  # the largest index of a word
LinkMethod = Literal["naive", "shift", "shared"]
LINK_METHODS: tuple[LinkMethod, ...] = get_args(LinkMethod)


class Links(NamedTuple):
    """The links of a sentence pair; the possible ones include the sure ones."""

    sure: frozenset[Link]
    possible: frozenset[Link]

    def gold(self) -> Gold:
        return Gold(sure=sorted(self.sure), possible=sorted(self.possible))


def grade_links(links: Iterable[Link]) -> Links:
    """Grade links: one-to-one links are sure, links of phrases ("looks for" to "cherche") only possible.

    >>> sorted(grade_links([(0, 0), (1, 1), (2, 1)]).sure)
    [(0, 0)]
    """
    possible = frozenset(links)
    sources, targets = (Counter(link[side] for link in possible) for side in (0, 1))
    return Links(frozenset(link for link in possible if sources[link[0]] == targets[link[1]] == 1), possible)


def parse_links(line: str, base: int = 0) -> Links:
    """Parse a line in Pharaoh format, `3-4` for sure and `3p4` for possible links; words count from `base`.

    >>> links = parse_links("0-0 1p2")
    >>> sorted(links.sure), sorted(links.possible)
    ([(0, 0)], [(0, 0), (1, 2)])
    """
    sure, possible = set(), set()
    for text in line.split():
        separator = "p" if "p" in text else "-"
        left, _, right = text.partition(separator)
        try:
            link = int(left) - base, int(right) - base
        except ValueError:
            raise DataError(f'"{text}": expected a link such as 3-4, or 3p4 for a possible one') from None
        if max(link) > MAX_WORD:
            raise DataError(f'"{text[:40]}": no sentence has so many words')
        if min(link) < 0:
            raise DataError(f'"{text}": word {min(link) + base} is out of range; words count from {base}')
        possible.add(link)
        if separator == "-":
            sure.add(link)
    return Links(frozenset(sure), frozenset(possible))


def read_links(path: Path, base: int = 0) -> list[Links]:
    """Read a Pharaoh file, one line per sentence pair; gzip files are decompressed."""
    try:
        lines = read_within(path, MAX_BYTES, DataError).decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8 text") from None
    alignments = []
    for number, line in enumerate(lines, 1):
        try:
            alignments.append(parse_links(line, base))
        except DataError as error:
            raise DataError(f"{path}, line {number}: {error}") from None
    return alignments


def format_links(links: Iterable[Link]) -> str:
    """Return links as a line in Pharaoh format.

    >>> format_links([(1, 0), (0, 0)])
    '0-0 1-0'
    """
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def trace_links(
    trace: Trace, method: LinkMethod = "naive", site: str | None = None, head: int | None = None
) -> set[Link]:
    """Link each output word of a trace to the source word with the largest weight."""
    sides = {record.site: (record.query_side, record.key_side) for record in trace.sites}
    name = trace.site(site).site
    if sides[name] != ("target", "source"):
        choices = [other for other, pair in sides.items() if pair == ("target", "source")]
        raise TraceError(
            f"{name} has no weights between output and input words, and so no word links"
            + (f"; use {' or '.join(choices)}" if choices else "")
        )
    source, target = ([token.word for token in side.tokens] for side in (trace.source, trace.target))
    return word_links(trace.matrix(site, head), source, target, method, trace.shift)


def word_links(
    matrix: Array, source: Sequence[int], target: Sequence[int], method: LinkMethod = "naive", shift: int = 0
) -> set[Link]:
    """Link each target word to the source word with the largest weight, given the word index of each token.

    `matrix` is (step, position). `naive` takes the step that generated a word. `shift` takes the step `shift`
    later, whose query contains the word (the last step where there is none). `shared` divides each source word's
    weights by their sum over all steps, so that a word with a constant weight does not win everywhere.

    >>> weights = np.array([[0.5, 0.4, 0.1], [0.7, 0.1, 0.2]])  # the first word always has the largest weight
    >>> sorted(word_links(weights, [0, 1, 2], [0, 1]))
    [(0, 0), (0, 1)]
    >>> sorted(word_links(weights, [0, 1, 2], [0, 1], "shared"))
    [(1, 0), (2, 1)]
    """
    steps = np.minimum(np.arange(len(matrix)) + (shift if method == "shift" else 0), len(matrix) - 1)
    by_word = fold_words(matrix[steps], source, target)
    if not by_word.size:
        return set()
    if method == "shared":
        by_word = by_word / np.maximum(by_word.sum(axis=0), 1e-12)
    written = set(target)  # a word without tokens has no link
    return {(int(row.argmax()), word) for word, row in enumerate(by_word) if word in written}

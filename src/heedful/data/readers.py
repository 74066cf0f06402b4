"""Reading pairs of lines: two parallel files or one TSV, plain or gz, always UTF-8."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from heedful.config import WorldConfig
from heedful.data.paths import locate
from heedful.errors import DataError

Links = tuple[tuple[int, int], ...]


class TextPair(NamedTuple):
    """A source line, its target, and the gold word alignment where it is known."""

    source: str
    target: str
    links: Links | None = None


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a text file without their ends; a broken one is named with its number."""
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, raw in enumerate(file, 1):  # noqa: B007 - the number is for the error below
                yield raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, line {number}: not UTF-8 (byte {error.start} of the line)") from None
    except (OSError, EOFError) as error:  # a truncated or false gz
        raise DataError(f"{path}, after line {number}: cannot be read: {error}") from None


def read_pairs(files: Sequence[str], base: Path) -> list[TextPair]:
    """All pairs of a TSV (source, target) or of two parallel files."""
    paths = [locate(name, base) for name in files]
    pairs = list(_tsv(paths[0]) if len(paths) == 1 else _parallel(*paths))
    if not pairs:
        raise DataError(f"{', '.join(map(str, paths))}: no pairs in it")
    return pairs


def _tsv(path: Path) -> Iterator[TextPair]:
    for number, line in enumerate(read_lines(path), 1):
        cells = line.split("\t")
        if len(cells) < 2 or not cells[0].strip() or not cells[1].strip():
            raise DataError(
                f"{path}, line {number}: expected source, tab, target; found {len(cells)} column(s):"
                f" {line[:60]!r}"
            )
        yield TextPair(cells[0], cells[1])


def _parallel(source: Path, target: Path) -> Iterator[TextPair]:
    left, right = list(read_lines(source)), list(read_lines(target))
    if len(left) != len(right):
        raise DataError(f"{source} has {len(left):,} lines, but {target} has {len(right):,}: they must agree")
    for number, (one, other) in enumerate(zip(left, right, strict=True), 1):
        if not one.strip() or not other.strip():
            blank = source if not one.strip() else target
            raise DataError(f"{blank}, line {number}: blank")
        yield TextPair(one, other)


def world_pairs(world: WorldConfig) -> dict[str, list[TextPair]]:
    """The three splits of a phrase world, made in memory; no source sentence is in two of them."""
    from heedful.data.worlds import phrases

    sizes = {"test": world.test, "valid": world.valid, "train": world.train}
    stream = phrases.splits(
        sizes, world.seed, languages=world.languages, min_words=world.min_words, max_words=world.max_words
    )
    return {
        name: [TextPair(" ".join(p.source), " ".join(p.target), p.links) for p in pairs]
        for name, pairs in stream.items()
    }

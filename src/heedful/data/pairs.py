"""Pairs of source and target text, from two parallel files, a table, or a generated world."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from heedful.config import DataConfig, WorldConfig
from heedful.data.lines import BadLine, BadLines, assign_split, describe_part, iter_lines
from heedful.data.paths import locate
from heedful.data.tables import Row, Table
from heedful.data.worlds import moods, phrases
from heedful.errors import DataError

Links = tuple[tuple[int, int], ...]  # word alignment: positions in source and target, counted from 0
TEXT_ROLES = ("source", "target")
LABEL_ROLES = ("text", "label")
READER_VERSION = 6  # part of every fingerprint; increment it when the same file is read differently


class TextPair(NamedTuple):
    """A source text, its target, and their gold word alignment if it is known."""

    source: str
    target: str
    links: Links | None = None


class NumberedPair(NamedTuple):
    """A pair, the number of the line it was read from, and of its row in the file, from 0; of extra files None."""

    line: int
    pair: TextPair
    row: int | None = None


class PairFiles:
    """The pairs of one split, read from the files at each iteration and not kept in memory.

    Relative file names start at the folder `base`. `split` ("train", "valid" or "test") selects the pairs that
    `assign_split` puts into that split; "" selects all. The pairs of `extra` come last. `roles` say in messages what
    the columns of a table are. `bad_lines` lists the lines that the last iteration skipped.
    """

    def __init__(
        self,
        files: Sequence[str],
        base: Path,
        data: DataConfig | None = None,
        split: str = "",
        extra: PairFiles | None = None,
        roles: tuple[str, str] = TEXT_ROLES,
    ) -> None:
        self.paths = tuple(locate(name, base) for name in files)
        self.data = data if data is not None else DataConfig.model_construct()
        self.split, self.extra, self.roles = split, extra, roles
        self.bad_lines = BadLines()
        if self.is_parallel and self.data.where:
            raise DataError(
                f"{self}: data.where selects rows of a table and has no effect on parallel files; remove it"
            )

    @property
    def is_parallel(self) -> bool:
        return len(self.paths) == 2

    @cached_property
    def table(self) -> Table:
        """The table of a single file, with the columns of source and target."""
        return Table(self.paths[0], self.roles, self.data)

    def part(self, split: str) -> PairFiles:
        """Return another split of the same files."""
        part = copy(self)
        part.split, part.extra, part.bad_lines = split, None, BadLines()
        return part

    def describe(self) -> list[str]:
        """Return a line for the log about each table: its format, header and columns."""
        lines = [] if self.is_parallel else [self.table.describe()]
        return [*lines, *(self.extra.describe() if self.extra else [])]

    def __str__(self) -> str:
        return f"{self._file_names()}, {self.extra}" if self.extra else self._file_names()

    def __iter__(self) -> Iterator[TextPair]:
        return (row.pair for row in self.numbered_pairs())

    def numbered_pairs(self) -> Iterator[NumberedPair]:
        """Yield the pairs with their line numbers; raise a DataError if there are none."""
        self.bad_lines = BadLines(self.data.on_error)
        yield from self._read(self.bad_lines)
        if self.extra:
            yield from (numbered._replace(row=None) for numbered in self.extra._read(self.bad_lines))

    def _read(self, bad_lines: BadLines) -> Iterator[NumberedPair]:
        empty = True
        rows = _read_parallel(self.paths) if self.is_parallel else iter(self.table)
        for number, row in enumerate(rows):
            if isinstance(row, BadLine):
                bad_lines.add(row, rows)
            elif row is not None and (not self.split or self._split_of(row.texts) == self.split):
                empty = False
                yield NumberedPair(row.line, TextPair(row.texts[0], row.texts[1]), number)
        if empty:
            message = f"{self._file_names()}: contains no pairs{self._describe_selection()}"
            raise DataError("\n".join(filter(None, [message, str(bad_lines)])))

    def fingerprint(self) -> str:
        """Return a hash of the files' contents and of every setting that changes how they are read."""
        data = self.data
        settings: list[object] = [self.split, self.roles, data.columns, data.header, data.separator]
        settings += [data.where, data.on_error]
        settings += [data.split_valid, data.split_test, data.split_by, data.split_seed] if self.split else []
        suffixes = ["".join(path.suffixes).lower() for path in self.paths]
        digest = hashlib.sha256(json.dumps([READER_VERSION, suffixes, settings]).encode())
        for path in self.paths:
            try:
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
            except OSError as error:
                raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
        digest.update(self.extra.fingerprint().encode() if self.extra else b"")
        return digest.hexdigest()

    def _file_names(self) -> str:
        return ", ".join(map(str, self.paths))

    def _split_of(self, texts: Sequence[str]) -> str:
        text = texts[0] if self.data.split_by == "source" else texts[1]
        return assign_split(text, self.data.split_valid, self.data.split_test, self.data.split_seed)

    def _describe_selection(self) -> str:
        parts = [f"data.where = {list(self.data.where)}"] if self.data.where else []
        parts += [describe_part(self.split, getattr(self.data, f"split_{self.split}", 0.0))] if self.split else []
        return f" ({', '.join(parts)})" if parts else ""


def open_pairs(data: DataConfig, base: Path, roles: tuple[str, str] = TEXT_ROLES) -> dict[str, PairFiles]:
    """Return the splits of a recipe; one without files of its own is split from the training file by hash.

    All files are looked for, and the columns of all tables, before an error is raised.
    """
    fractions = {"valid": data.split_valid, "test": data.split_test}
    files = {"train": data.train, "extra_train": data.extra_train, "valid": data.valid, "test": data.test}
    opened: dict[str, PairFiles] = {}
    errors: list[str] = []
    for name, names in files.items():
        if not names:
            continue
        try:
            opened[name] = pairs = PairFiles(names, base, data, roles=roles)
            pairs.describe()  # opens the table
        except DataError as error:
            errors.append(str(error))
    if errors:
        raise DataError("\n".join(dict.fromkeys(errors)))
    train = opened["train"].part("train" if any(fractions.values()) else "")
    train.extra = opened.get("extra_train")
    splits = {"train": train}
    for split in ("valid", "test"):
        if split in opened:
            splits[split] = opened[split]
        elif fractions[split]:
            splits[split] = opened["train"].part(split)
    return splits


def read_pairs(files: Sequence[str], base: Path, data: DataConfig | None = None) -> list[TextPair]:
    """Return all pairs of files that fit into memory."""
    return list(PairFiles(files, base, data))


def _read_parallel(paths: Sequence[Path]) -> Iterator[Row | BadLine]:
    """Yield line i of both files as pair i; raise a DataError if the files differ in length."""
    source_path, target_path = paths
    n_source = n_target = 0
    lines = zip_longest(iter_lines(source_path), iter_lines(target_path))
    for number, (source, target) in enumerate(lines, 1):
        if source is not None:
            n_source = number
        if target is not None:
            n_target = number
        if source is not None and target is not None:
            yield _parallel_row(paths, number, source, target)
    if n_source != n_target:
        raise DataError(
            f"{source_path} has {n_source:,} lines, but {target_path} has {n_target:,}:"
            " parallel files need the same number of lines"
        )


def _parallel_row(paths: Sequence[Path], number: int, source: str | BadLine, target: str | BadLine) -> Row | BadLine:
    if isinstance(source, BadLine):
        return source
    if isinstance(target, BadLine):
        return target
    for path, text in zip(paths, (source, target), strict=True):
        if not text.strip():
            return BadLine(path, number, "blank")
    return Row(number, (source, target))


# --- worlds -------------------------------------------------------------------------------------------------


def world_pairs(world: WorldConfig) -> dict[str, list[TextPair]]:
    """Return the splits of the world "phrases" or "moods"; no source sentence is in two of them."""
    sizes = {"test": world.test, "valid": world.valid, "train": world.train}
    if world.name == "moods":
        return _mood_pairs(world, sizes)
    splits = phrases.draw_splits(
        sizes, world.seed, languages=world.languages, min_words=world.min_words, max_words=world.max_words
    )
    return {
        name: [TextPair(" ".join(p.source), " ".join(p.target), p.links) for p in pairs]
        for name, pairs in splits.items()
    }


def _mood_pairs(world: WorldConfig, sizes: dict[str, int]) -> dict[str, list[TextPair]]:
    """Return texts and labels; the gold links connect the words that decide the label with it."""
    min_words = max(moods.MIN_WORDS, world.min_words)
    max_words = max(min_words, world.max_words)
    stream = moods.draw_moods(sum(sizes.values()), world.seed, world.classes, min_words, max_words)
    return {
        name: [TextPair(" ".join(m.words), m.label, tuple((i, 0) for i in m.gold)) for m in islice(stream, size)]
        for name, size in sizes.items()
    }

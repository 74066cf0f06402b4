"""Pairs of source and target text, from two parallel files, a TSV file, a JSONL file, or a generated world."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from heedful.config import DataConfig, WorldConfig
from heedful.data.lines import EXCERPT_LENGTH, BadLine, BadLines, assign_split, iter_lines, parse_column
from heedful.data.paths import locate
from heedful.data.worlds import moods, phrases
from heedful.errors import DataError

Links = tuple[tuple[int, int], ...]  # word alignment: positions in source and target, counted from 0
JSONL_SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
READER_VERSION = 2  # part of every fingerprint; increment it when the same file is read differently


class TextPair(NamedTuple):
    """A source text, its target, and their gold word alignment if it is known."""

    source: str
    target: str
    links: Links | None = None


class NumberedPair(NamedTuple):
    """A pair and the number of the line it was read from."""

    line: int
    pair: TextPair


Row = NumberedPair | BadLine | None  # None: a row that data.where excludes


class PairFiles:
    """The pairs of one split, read from the files at each iteration and not kept in memory.

    Relative file names start at the folder `base`. `split` ("train", "valid" or "test") selects the pairs that
    `assign_split` puts into that split; "" selects all. The pairs of `extra` come last. `bad_lines` lists the lines
    that the last iteration skipped.
    """

    def __init__(
        self,
        files: Sequence[str],
        base: Path,
        data: DataConfig | None = None,
        split: str = "",
        extra: PairFiles | None = None,
    ) -> None:
        self.paths = tuple(locate(name, base) for name in files)
        self.data = data if data is not None else DataConfig.model_construct()
        self.split = split
        self.extra = extra
        self.format = find_format(self.paths)
        self.bad_lines = BadLines()
        if self.format.name == "parallel" and self.data.where:
            raise DataError(
                f"{self}: data.where selects rows of a TSV or JSONL file and has no effect on parallel files; remove it"
            )

    def __str__(self) -> str:
        return f"{self._file_names()}, {self.extra}" if self.extra else self._file_names()

    def __iter__(self) -> Iterator[TextPair]:
        return (row.pair for row in self.numbered_pairs())

    def numbered_pairs(self) -> Iterator[NumberedPair]:
        """Yield the pairs with their line numbers; raise a DataError if there are none."""
        self.bad_lines = BadLines(self.data.on_error)
        yield from self._read(self.bad_lines)
        if self.extra:
            yield from self.extra._read(self.bad_lines)

    def _read(self, bad_lines: BadLines) -> Iterator[NumberedPair]:
        empty = True
        for row in self.format.read(self.paths, self.data):
            if isinstance(row, BadLine):
                bad_lines.add(row)
            elif row is not None and (not self.split or self._split_of(row.pair) == self.split):
                empty = False
                yield row
        if empty:
            message = f"{self._file_names()}: contains no pairs{self._describe_selection()}"
            raise DataError("\n".join(filter(None, [message, str(bad_lines)])))

    def fingerprint(self) -> str:
        """Return a hash of the files' contents and of every setting that changes how they are read."""
        data = self.data
        settings: list[object] = [self.split, data.columns, data.fields, data.where, data.on_error]
        settings += [data.split_valid, data.split_test, data.split_by] if self.split else []
        digest = hashlib.sha256(json.dumps([READER_VERSION, self.format.name, settings]).encode())
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

    def _split_of(self, pair: TextPair) -> str:
        text = pair.source if self.data.split_by == "source" else pair.target
        return assign_split(text, self.data.split_valid, self.data.split_test)

    def _describe_selection(self) -> str:
        parts = [f"data.where = {list(self.data.where)}"] if self.data.where else []
        parts += [f"the {self.split} part of the split"] if self.split else []
        return f" ({', '.join(parts)})" if parts else ""


def open_pairs(data: DataConfig, base: Path) -> dict[str, PairFiles]:
    """Return the splits of a recipe; one without files of its own is split from the training file by hash."""
    fractions = {"valid": data.split_valid, "test": data.split_test}
    extra = PairFiles(data.extra_train, base, data) if data.extra_train else None
    splits = {"train": PairFiles(data.train, base, data, "train" if any(fractions.values()) else "", extra)}
    for split, files in (("valid", data.valid), ("test", data.test)):
        if files:
            splits[split] = PairFiles(files, base, data)
        elif fractions[split]:
            splits[split] = PairFiles(data.train, base, data, split)
    return splits


def read_pairs(files: Sequence[str], base: Path, data: DataConfig | None = None) -> list[TextPair]:
    """Return all pairs of files that fit into memory."""
    return list(PairFiles(files, base, data))


# --- formats ------------------------------------------------------------------------------------------------


def _read_parallel(paths: Sequence[Path], _data: DataConfig) -> Iterator[Row]:
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


def _parallel_row(paths: Sequence[Path], number: int, source: str | BadLine, target: str | BadLine) -> Row:
    if isinstance(source, BadLine):
        return source
    if isinstance(target, BadLine):
        return target
    for path, text in zip(paths, (source, target), strict=True):
        if not text.strip():
            return BadLine(path, number, "blank")
    return NumberedPair(number, TextPair(source, target))


def _parse_conditions(data: DataConfig) -> list[tuple[str, str]]:
    """Return the column or field and the value of each condition of `data.where`."""
    return [(name.strip(), value) for name, _, value in (text.partition("=") for text in data.where)]


def _read_tsv(paths: Sequence[Path], data: DataConfig) -> Iterator[Row]:
    (path,) = paths
    conditions: list[tuple[int, str]] = []
    for name, value in _parse_conditions(data):
        column = parse_column(name)
        if column is None:
            raise DataError(
                f'data.where = "{name}={value}": {path} is a TSV file; give the number of a column, counted from 1'
            )
        conditions.append((column - 1, value))
    source, target = (column - 1 for column in data.columns)
    n_columns = 1 + max(source, target, *(column for column, _ in conditions))
    expected = "source, tab, target" if (source, target, n_columns) == (0, 1, 2) else f"at least {n_columns} columns"
    for number, line in enumerate(iter_lines(path), 1):
        if isinstance(line, BadLine):
            yield line
            continue
        cells = line.split("\t")
        if len(cells) < n_columns:
            reason = f"expected {expected}; found {len(cells)} column(s): {line[:EXCERPT_LENGTH]!r}"
            yield BadLine(path, number, reason if line.strip() else "blank")
        elif any(cells[column] != value for column, value in conditions):
            yield None
        elif not cells[source].strip() or not cells[target].strip():
            blank = source if not cells[source].strip() else target
            yield BadLine(path, number, f"column {blank + 1} is blank: {line[:EXCERPT_LENGTH]!r}")
        else:
            yield NumberedPair(number, TextPair(cells[source], cells[target]))


def _read_jsonl(paths: Sequence[Path], data: DataConfig) -> Iterator[Row]:
    (path,) = paths
    conditions = _parse_conditions(data)
    for number, line in enumerate(iter_lines(path), 1):
        if isinstance(line, BadLine):
            yield line
            continue
        record = _parse_json_object(line)
        if isinstance(record, str):
            yield BadLine(path, number, record)
        elif missing := [name for name, _ in conditions if name not in record]:
            yield BadLine(path, number, _missing_field(record, missing[0]))
        elif any(_as_text(record[name]) != value for name, value in conditions):
            yield None
        else:
            yield _jsonl_row(record, data.fields, path, number)


def _parse_json_object(line: str) -> dict[str, object] | str:
    """Return the JSON object of a line, or the reason why there is none."""
    if not line.strip():
        return "blank"
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    return record if isinstance(record, dict) else f"expected an object with fields, found {line[:EXCERPT_LENGTH]!r}"


def _jsonl_row(record: dict[str, object], fields: tuple[str, str], path: Path, number: int) -> Row:
    texts: list[str] = []
    for name in fields:
        text = record.get(name)
        if name not in record:
            return BadLine(path, number, _missing_field(record, name))
        if not isinstance(text, str):
            return BadLine(path, number, f'field "{name}": expected text, found {_as_text(text)[:EXCERPT_LENGTH]}')
        if not text.strip():
            return BadLine(path, number, f'field "{name}": blank')
        if any("\ud800" <= character <= "\udfff" for character in text):
            return BadLine(path, number, f'field "{name}": contains half a surrogate pair, which is not valid Unicode')
        texts.append(text)
    return NumberedPair(number, TextPair(texts[0], texts[1]))


def _missing_field(record: dict[str, object], name: str) -> str:
    return f'no field "{name}"; the fields are: {", ".join(record)}'


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class PairFormat(NamedTuple):
    """A file format: `applies` tells if files have it, `read` yields their rows."""

    name: str
    applies: Callable[[Sequence[Path]], bool]
    read: Callable[[Sequence[Path], DataConfig], Iterator[Row]]


FORMATS = (  # the first that applies is used
    PairFormat("parallel", lambda paths: len(paths) == 2, _read_parallel),
    PairFormat("jsonl", lambda paths: paths[0].name.lower().endswith(JSONL_SUFFIXES), _read_jsonl),
    PairFormat("tsv", lambda _: True, _read_tsv),
)


def find_format(paths: Sequence[Path]) -> PairFormat:
    """Return the format of one file or of two parallel files."""
    return next(format for format in FORMATS if format.applies(paths))


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

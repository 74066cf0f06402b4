"""Reading pairs as a stream: two parallel files, a TSV or a JSONL; plain or gz, always UTF-8."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from heedful.config import DataConfig, WorldConfig
from heedful.data.paths import locate
from heedful.errors import DataError

Links = tuple[tuple[int, int], ...]
JSONL = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
SHOWN = 5  # broken lines that a report spells out
CELLS = 20_000  # places a text can fall into when data is split by hash


class TextPair(NamedTuple):
    """A source line, its target, and the gold word alignment where it is known."""

    source: str
    target: str
    links: Links | None = None


class Broken(NamedTuple):
    """Why a line gives no pair."""

    path: Path
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}: {self.what}"


class Report:
    """What one reading left out: how many lines, and the first few of them in words."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[str] = []

    def add(self, broken: Broken) -> None:
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(str(broken))

    def __str__(self) -> str:
        if not self.count:
            return ""
        rest = self.count - len(self.first)
        lines = [f"{self.count:,} broken line(s) skipped:", *(f"  {text}" for text in self.first)]
        return "\n".join([*lines, f"  and {rest:,} more"] if rest else lines)


class Found(NamedTuple):
    """A pair and the line it was read from."""

    line: int
    pair: TextPair


Item = Found | Broken | None  # None: a row that `where` leaves out


class Pairs:
    """The pairs of one split, read from its files anew each time it is iterated; nothing is kept.

    `report` tells of the lines that the last reading skipped.
    """

    def __init__(
        self,
        files: Sequence[str],
        base: Path,
        data: DataConfig | None = None,
        part: str = "",
        also: Pairs | None = None,
    ) -> None:
        self.paths = tuple(locate(name, base) for name in files)
        self.data = data if data is not None else DataConfig.model_construct()
        self.part = part  # "train", "valid" or "test" of a split by hash; "": all
        self.also = also  # what is read behind them
        self.report = Report()
        if len(self.paths) == 2 and self.data.where:
            raise DataError(f"{self}: data.where chooses rows of a TSV or JSONL, not of parallel files")

    def __str__(self) -> str:
        return f"{self._files()}, {self.also}" if self.also else self._files()

    def __iter__(self) -> Iterator[TextPair]:
        return (found.pair for found in self.numbered())

    def numbered(self) -> Iterator[Found]:
        """The pairs with their line numbers. A file that gives no pair at all is refused."""
        self.report = Report()
        yield from self._own(self.report)
        if self.also:
            yield from self.also._own(self.report)

    def _own(self, report: Report) -> Iterator[Found]:
        empty = True
        for item in self._items():
            if isinstance(item, Broken):
                if self.data.broken == "refuse":
                    raise DataError(f'{item} (data.broken = "skip" goes on without such lines)')
                report.add(item)
            elif item is not None and (not self.part or self._place(item.pair) == self.part):
                empty = False
                yield item
        if empty:
            raise DataError(
                "\n".join(filter(None, [f"{self._files()}: no pairs in it{self._chosen()}", str(report)]))
            )

    def fingerprint(self) -> str:
        """A hash of what is in the files and of every setting that changes how they are read."""
        data = self.data
        settings: list[object] = [self.part, data.columns, data.fields, data.where, data.broken]
        settings += [data.split_valid, data.split_test, data.split_by] if self.part else []
        digest = hashlib.sha256(json.dumps([FORMATS, len(self.paths), settings]).encode())
        for path in self.paths:
            digest.update(_kind(path).encode())
            try:
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
            except OSError as error:
                raise DataError(f"{path}: cannot be read: {error}") from None
        digest.update(self.also.fingerprint().encode() if self.also else b"")
        return digest.hexdigest()

    def _files(self) -> str:
        return ", ".join(map(str, self.paths))

    def _items(self) -> Iterator[Item]:
        if len(self.paths) == 2:
            return _parallel(*self.paths)
        (path,) = self.paths
        return _jsonl(path, self.data) if _kind(path) == "jsonl" else _tsv(path, self.data)

    def _place(self, pair: TextPair) -> str:
        text = pair.source if self.data.split_by == "source" else pair.target
        return split_of(text, self.data.split_valid, self.data.split_test)

    def _chosen(self) -> str:
        said = [f"data.where = {list(self.data.where)}"] if self.data.where else []
        said += [f"the {self.part} part of the split"] if self.part else []
        return f" ({', '.join(said)})" if said else ""


FORMATS = 1  # raised when the same file would be read differently


def open_pairs(data: DataConfig, base: Path) -> dict[str, Pairs]:
    """The splits a recipe names, by files of their own or by a hash of one side of the training file."""
    hashed = {"valid": data.split_valid, "test": data.split_test}
    by_hash = any(hashed.values())
    also = Pairs(data.also, base, data) if data.also else None
    splits = {"train": Pairs(data.train, base, data, "train" if by_hash else "", also)}
    for split, files in (("valid", data.valid), ("test", data.test)):
        if files:
            splits[split] = Pairs(files, base, data)
        elif hashed[split]:
            splits[split] = Pairs(data.train, base, data, split)
    return splits


def split_of(text: str, valid: float, test: float) -> str:
    """The split a text falls into, by its content alone: equal texts never meet across splits.

    With 0.05 each this is the rule of the Tatoeba folders: md5 modulo 20, 0 for test and 1 for valid.

    >>> [split_of(word, valid=0.25, test=0.25) for word in ("one", "two", "e")]
    ['train', 'test', 'valid']
    """
    number = int.from_bytes(hashlib.md5(text.encode("utf-8"), usedforsecurity=False).digest()[:4], "big")
    place = number % 20 * (CELLS // 20) + number // 20 % (CELLS // 20)
    if place < round(test * CELLS):
        return "test"
    return "valid" if place < round((test + valid) * CELLS) else "train"


def read_pairs(files: Sequence[str], base: Path, data: DataConfig | None = None) -> list[TextPair]:
    """All pairs at once, for files known to be small."""
    return list(Pairs(files, base, data))


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a text file without their ends; a line that is not UTF-8 is an error with its number."""
    for line in raw_lines(path):
        if isinstance(line, Broken):
            raise DataError(str(line))
        yield line


def must_be_file(path: Path) -> None:
    """Say it before anything is opened."""
    if path.is_dir():
        raise DataError(f"{path} is a folder; give a file of lines")
    if not path.exists():
        raise DataError(f"{path}: there is no such file")


def raw_lines(path: Path) -> Iterator[str | Broken]:
    """The lines of a text file without their ends, gz or not; what is not UTF-8 is broken."""
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                try:
                    text = raw.decode("utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    yield Broken(path, number, f"not UTF-8 (byte {error.start} of the line)")
                    continue
                yield text.removeprefix("\ufeff") if number == 1 else text  # Windows marks a file's start
    except (OSError, EOFError, zlib.error) as error:  # a truncated or false gz
        raise DataError(f"{path}, after line {number}: cannot be read: {error}") from None


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a text file, gz or not; one that is no UTF-8 is refused."""
    must_be_file(path)
    for line in raw_lines(path):
        if isinstance(line, Broken):
            raise DataError(str(line))
        yield line


def _kind(path: Path) -> str:
    return "jsonl" if path.name.lower().endswith(JSONL) else "lines"


def _parallel(source: Path, target: Path) -> Iterator[Item]:
    """Line by line from both; the longer file is read to its end only to say how long it is."""
    left = right = 0
    for number, (one, other) in enumerate(zip_longest(raw_lines(source), raw_lines(target)), 1):
        if one is not None:
            left = number
        if other is not None:
            right = number
        if one is not None and other is not None:
            yield _checked(source, target, number, one, other)
    if left != right:
        raise DataError(f"{source} has {left:,} lines, but {target} has {right:,}: they must agree")


def _checked(source: Path, target: Path, number: int, one: str | Broken, other: str | Broken) -> Item:
    if isinstance(one, Broken):
        return one
    if isinstance(other, Broken):
        return other
    for path, text in ((source, one), (target, other)):
        if not text.strip():
            return Broken(path, number, "blank")
    return Found(number, TextPair(one, other))


def _conditions(data: DataConfig) -> list[tuple[str, str]]:
    return [(name.strip(), value) for name, _, value in (text.partition("=") for text in data.where)]


def _tsv(path: Path, data: DataConfig) -> Iterator[Item]:
    conditions: list[tuple[int, str]] = []
    for name, value in _conditions(data):
        if not name.isascii() or not name.isdigit() or int(name) < 1:
            raise DataError(
                f'data.where = "{name}={value}": the columns of the TSV {path} have numbers, from 1'
            )
        conditions.append((int(name) - 1, value))
    source, target = (column - 1 for column in data.columns)
    needed = 1 + max(source, target, *(column for column, _ in conditions))
    expected = (
        "source, tab, target" if (source, target, needed) == (0, 1, 2) else f"at least {needed} columns"
    )
    for number, line in enumerate(raw_lines(path), 1):
        if isinstance(line, Broken):
            yield line
            continue
        cells = line.split("\t")
        if len(cells) < needed:
            what = (
                f"expected {expected}; found {len(cells)} column(s): {line[:60]!r}"
                if line.strip()
                else "blank"
            )
            yield Broken(path, number, what)
        elif any(cells[column] != value for column, value in conditions):
            yield None
        elif not cells[source].strip() or not cells[target].strip():
            blank = source if not cells[source].strip() else target
            yield Broken(path, number, f"column {blank + 1} is blank: {line[:60]!r}")
        else:
            yield Found(number, TextPair(cells[source], cells[target]))


def _jsonl(path: Path, data: DataConfig) -> Iterator[Item]:
    conditions = _conditions(data)
    for number, line in enumerate(raw_lines(path), 1):
        if isinstance(line, Broken):
            yield line
            continue
        row = _object(line)
        if isinstance(row, str):
            yield Broken(path, number, row)
        elif missing := [name for name, _ in conditions if name not in row]:
            yield Broken(path, number, f'no field "{missing[0]}"; there are: {", ".join(row)}')
        elif any(_plain(row[name]) != value for name, value in conditions):
            yield None
        else:
            yield _of_fields(row, data.fields, path, number)


def _object(line: str) -> dict[str, object] | str:
    """The object a line holds, or what is wrong with the line."""
    if not line.strip():
        return "blank"
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    return row if isinstance(row, dict) else f"expected an object with fields, found {line[:60]!r}"


def _of_fields(row: dict[str, object], fields: tuple[str, str], path: Path, number: int) -> Item:
    texts: list[str] = []
    for name in fields:
        text = row.get(name)
        if name not in row:
            return Broken(path, number, f'no field "{name}"; there are: {", ".join(row)}')
        if not isinstance(text, str):
            return Broken(path, number, f'field "{name}": expected text, found {_plain(text)[:60]}')
        if not text.strip():
            return Broken(path, number, f'field "{name}": blank')
        if any("\ud800" <= character <= "\udfff" for character in text):
            return Broken(path, number, f'field "{name}": half a surrogate pair, which no text holds')
        texts.append(text)
    return Found(number, TextPair(texts[0], texts[1]))


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def world_pairs(world: WorldConfig) -> dict[str, list[TextPair]]:
    """The three splits of a world of texts, made in memory; no source sentence is in two of them."""
    from heedful.data.worlds import phrases

    sizes = {"test": world.test, "valid": world.valid, "train": world.train}
    if world.name == "moods":
        return _moods(world, sizes)
    stream = phrases.splits(
        sizes, world.seed, languages=world.languages, min_words=world.min_words, max_words=world.max_words
    )
    return {
        name: [TextPair(" ".join(p.source), " ".join(p.target), p.links) for p in pairs]
        for name, pairs in stream.items()
    }


def _moods(world: WorldConfig, sizes: dict[str, int]) -> dict[str, list[TextPair]]:
    """Texts and labels; gold links lead from the words that decide to the label."""
    from heedful.data.worlds.moods import SHORTEST, moods

    shortest = max(SHORTEST, world.min_words)
    drawn = moods(sum(sizes.values()), world.seed, world.classes, shortest, max(shortest, world.max_words))
    return {
        name: [
            TextPair(" ".join(m.words), m.label, tuple((at, 0) for at in m.gold)) for m in islice(drawn, size)
        ]
        for name, size in sizes.items()
    }

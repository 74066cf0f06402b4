"""CSV and TSV files: separator, quotes and header are found from the first lines, the rest is streamed.

Files that are not named .csv have a tab between columns if any of their first lines has one, and a quote is a
character like others, unless the first lines show that cells were quoted by a CSV writer. So plain TSV files are
read byte for byte.
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from heedful.data.header import is_header
from heedful.data.lines import MAX_LINE_BYTES, BadLine, iter_lines, require_file

SAMPLE_LINES = 200  # from which the layout is found
MAX_RECORD_LINES = 500  # of a quoted cell with line breaks; more: a quote that is not closed
SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon"}
LINE_BREAKS = re.compile(r"\s*[\r\n]+\s*")


class Record(NamedTuple):
    """The cells of one row, by number or by name, and the line it begins in."""

    line: int
    cells: Sequence[object] | Mapping[str, object]


class Dialect(NamedTuple):
    """How a text file is divided into cells, and the names of its columns if its first line has them."""

    separator: str
    quoted: bool
    names: tuple[str, ...]
    n_columns: int  # of the first line

    def __str__(self) -> str:
        separator = SEPARATORS.get(self.separator, repr(self.separator))
        header = f"header: {', '.join(self.names)}" if self.names else f"no header, {self.n_columns} column(s)"
        return f"{separator}-separated, {header}"


class DelimitedFile:
    """The rows of a CSV or TSV file; only its first lines are in memory."""

    def __init__(
        self,
        path: Path,
        header: str = "auto",
        separator: str = "",
        wanted: Sequence[object] = (),
        roles: Sequence[str] = (),
    ) -> None:
        require_file(path)
        self.path = path
        self.dialect = find_dialect(path, header, separator, wanted, roles)

    @property
    def names(self) -> tuple[str, ...]:
        return self.dialect.names

    @property
    def n_columns(self) -> int:
        return self.dialect.n_columns

    def __iter__(self) -> Iterator[Record | BadLine]:
        header_due = bool(self.names)
        for record in read_records(self.path, iter_lines(self.path), self.dialect.separator, self.dialect.quoted):
            if header_due and isinstance(record, Record) and not _is_blank(record):
                header_due = False
            else:
                yield record

    def describe(self) -> str:
        """Return a line for the log: what was found, and the setting that would change it."""
        return f"{self.path.name}: {self.dialect} (data.separator, data.header)"


def find_dialect(
    path: Path, header: str, separator: str, wanted: Sequence[object], roles: Sequence[str] = ()
) -> Dialect:
    """Return the dialect of a file by its name and its first lines; a first line with a `wanted` name is a header."""
    sample = list(islice(iter_lines(path), SAMPLE_LINES))
    is_csv = ".csv" in (suffix.lower() for suffix in path.suffixes)
    texts = [line for line in sample if not isinstance(line, BadLine) and line.strip()]
    separator = separator or _find_separator(path, texts, is_csv)
    quoted = separator in SEPARATORS and (is_csv or separator != "\t" or _is_quoted(texts, separator))
    records = [record for record in read_records(path, iter(sample), separator, quoted) if isinstance(record, Record)]
    rows = [[str(cell) for cell in record.cells] for record in records if not _is_blank(record)]
    if not rows:
        return Dialect(separator, quoted, (), 0)
    by_name = any(column in rows[0] for column in wanted)
    has_header = header == "yes" or (header == "auto" and (by_name or is_header(rows, roles)))
    names = tuple(cell.strip() for cell in rows[0]) if has_header else ()
    return Dialect(separator, quoted, names, len(rows[0]))


def _is_blank(record: Record) -> bool:
    return not any(str(cell).strip() for cell in record.cells)


def _find_separator(path: Path, texts: Sequence[str], is_csv: bool) -> str:
    if ".tsv" in path.suffixes or (not is_csv and any("\t" in text for text in texts)):
        return "\t"
    widths = {separator: _widths(texts, separator) for separator in SEPARATORS}
    regular = [separator for separator, counts in widths.items() if counts and set(counts) != {1}]
    if not is_csv:  # commas of a plain text are no separators unless every line has as many
        regular = [separator for separator in regular if len(set(widths[separator])) == 1]
    default = "," if is_csv else "\t"
    return max(regular, key=lambda separator: _share_of_mode(widths[separator]), default=default)


def _widths(texts: Sequence[str], separator: str) -> list[int]:
    records = read_records(Path(), iter(texts), separator, quoted=True)
    return [len(record.cells) for record in records if isinstance(record, Record)]


def _share_of_mode(counts: Sequence[int]) -> float:
    """Return the share of the most frequent number of cells, if there are at least two."""
    several = [count for count in counts if count > 1]
    return max((several.count(count) for count in set(several)), default=0) / len(counts)


def _is_quoted(texts: Iterable[str], separator: str) -> bool:
    """Return whether a CSV writer quoted some cells: quotes within them are doubled, and no cell contradicts that."""
    evidence = False
    for text in texts:
        for cell in text.split(separator):
            if cell.startswith('"') and len(cell) > 1 and cell.endswith('"'):
                inner = cell[1:-1]
                if '"' in inner.replace('""', ""):
                    return False
                evidence = evidence or '""' in inner
            elif '"' in cell:
                return False
    return evidence


class _UnclosedQuoteError(Exception):
    """A record that does not end within `MAX_RECORD_LINES`, or within the file."""


class _LineFeed:
    """The lines of a file for `csv.reader`, which asks for as many as a record has; can be put back."""

    def __init__(self, lines: Iterator[str | BadLine]) -> None:
        self.lines = lines
        self.returned: deque[str | BadLine] = deque()
        self.record: list[str | BadLine] = []  # lines of the current record
        self.number = 0  # of the last line

    def __iter__(self) -> _LineFeed:
        return self

    def __next__(self) -> str:
        line = self.next_line()
        if line is None:
            if self.record:
                raise _UnclosedQuoteError
            raise StopIteration
        self.record.append(line)
        too_long = sum(len(part) for part in self.record if isinstance(part, str)) > MAX_LINE_BYTES
        if isinstance(line, BadLine) or len(self.record) > MAX_RECORD_LINES or too_long:
            raise _UnclosedQuoteError
        return line + "\n"

    def next_line(self) -> str | BadLine | None:
        line = self.returned.popleft() if self.returned else next(self.lines, None)
        self.number += line is not None
        return line

    def put_back_all_but_first(self) -> None:
        self.returned.extendleft(reversed(self.record[1:]))
        self.number -= len(self.record) - 1


def read_records(
    path: Path, lines: Iterator[str | BadLine], separator: str, quoted: bool
) -> Iterator[Record | BadLine]:
    """Yield the cells of every row; with quotes a cell may have line breaks. Blank lines have one blank cell."""
    if quoted:
        yield from _read_quoted(path, _LineFeed(lines), separator)
        return
    for number, line in enumerate(lines, 1):
        yield line if isinstance(line, BadLine) else Record(number, line.split(separator))


def _read_quoted(path: Path, feed: _LineFeed, separator: str) -> Iterator[Record | BadLine]:
    while (line := feed.next_line()) is not None:
        start = feed.number
        if isinstance(line, BadLine):
            yield line
            continue
        if '"' not in line:  # the common case, and the quick one
            yield _parse_line(path, start, line, separator)
            continue
        feed.returned.appendleft(line)
        feed.number -= 1
        feed.record = []
        try:
            cells = next(csv.reader(feed, delimiter=separator))
            yield Record(start, [LINE_BREAKS.sub(" ", cell) for cell in cells])
        except _UnclosedQuoteError:
            feed.put_back_all_but_first()
            yield BadLine(path, start, "a quote is not closed")
        except csv.Error as error:
            feed.put_back_all_but_first()
            yield BadLine(path, start, f"not CSV: {error}")


def _parse_line(path: Path, number: int, line: str, separator: str) -> Record | BadLine:
    if not line.strip():
        return Record(number, [line])
    try:
        return Record(number, next(csv.reader([line], delimiter=separator)))
    except csv.Error as error:  # a carriage return within the line, or a cell of more than 131,072 characters
        return BadLine(path, number, f"not CSV: {error}")

"""Lines of UTF-8 text files, plain or gzipped; bad lines raise an error or are counted."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, cast

from heedful.errors import DataError

MAX_BAD_LINES = 5  # bad lines that a summary lists
MAX_SCANNED = 100_000  # rows after a bad line that are searched for others
MAX_LINE_BYTES = 1_000_000  # longer lines are bad lines; they would exhaust memory, or take minutes to tokenize
READ_ERRORS = (OSError, EOFError, zlib.error)  # the last two: a truncated or invalid gzip file
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
NOT_UTF8 = "not UTF-8"
UTF16 = "UTF-16, not UTF-8; save the file as UTF-8"
NOT_TEXT = {  # first bytes of a file that is no text -> what it is, and what to do
    **dict.fromkeys(UTF16_MARKS, UTF16),
    b"PK\x03\x04": "a spreadsheet or zip archive, not text; export the table as CSV",
    b"\xd0\xcf\x11\xe0": "an Office document, not text; export the table as CSV",
    b"\x1f\x8b": "compressed by gzip; end its name in .gz",
    b"PAR1": "a Parquet file; end its name in .parquet",
    b"%PDF-": "a PDF document, not text",
}
EXCERPT_LENGTH = 60  # characters of a bad line that an error quotes
MAX_NAMES = 400  # characters of the names of columns in a line of the log
MAX_DIGITS = 9  # of the number of a column
HASH_BUCKETS = 20_000  # the fractions of a split are rounded to multiples of 1 / 20,000


class BadLine(NamedTuple):
    """A line that cannot be used, and the reason."""

    path: Path
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}: {self.reason}"


class BadLines:
    """The bad lines of one pass over a file; `data.on_error` decides if they raise an error or are counted."""

    def __init__(self, on_error: Literal["error", "skip"] = "error") -> None:
        self.on_error = on_error
        self.count = 0
        self.first: list[str] = []

    def add(self, bad_line: BadLine, rest: Iterator[object] | None = None) -> None:
        """Count the line, or raise a DataError for it and the next bad lines of the `rest` of the rows."""
        if self.on_error == "error":
            raise _bad_lines_error(bad_line, rest or iter(()))
        self.count += 1
        if len(self.first) < MAX_BAD_LINES:
            self.first.append(str(bad_line))

    def __str__(self) -> str:
        if not self.count:
            return ""
        return "\n".join([f"{self.count:,} bad line(s) skipped:", *self.describe()])

    def describe(self) -> list[str]:
        """Return a line for each of the first bad lines, and one for the number of others."""
        rest = self.count - len(self.first)
        more = [f"  and {rest:,} more"] if rest else []
        return [*(f"  {text}" for text in self.first), *more, *_encoding_hint(self.first)]


def _bad_lines_error(bad_line: BadLine, rest: Iterator[object]) -> DataError:
    found = [str(bad_line)]
    try:
        later = (str(row) for row in islice(rest, MAX_SCANNED) if isinstance(row, BadLine))
        found += islice(later, MAX_BAD_LINES - 1)
    except DataError as error:  # the file is damaged further on
        found.append(str(error))
    if len(found) == 1:
        return DataError(f'{bad_line} (fix the line, or set data.on_error = "skip" to leave out such lines)')
    hint = '(fix the lines, or set data.on_error = "skip" to leave out such lines; there may be more)'
    lines = [f"{len(found)} bad lines:", *(f"  {text}" for text in found), hint, *_encoding_hint(found)]
    return DataError("\n".join(lines))


def _encoding_hint(bad_lines: Sequence[str]) -> list[str]:
    """Return what to do if several lines are not UTF-8, as in a file of Latin-1 or of Windows."""
    several = sum(NOT_UTF8 in text for text in bad_lines) > 1
    return ["save the file as UTF-8; it may be in Latin-1 or Windows-1252"] if several else []


def require_file(path: Path) -> None:
    """Raise a DataError if `path` is a folder or does not exist."""
    try:
        if path.is_dir():
            raise DataError(f"{path} is a folder; expected a text file")
        if not path.exists():
            raise DataError(f"{path}: there is no such file")
    except OSError as error:  # a name that is too long, a folder that may not be searched
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def iter_lines(path: Path) -> Iterator[str | BadLine]:
    """Yield the lines of a text file, plain or gzipped, as `decode_lines` does."""
    number = 0
    try:
        with _open(path) as file:
            _require_text(file, path)
            for line in decode_lines(file, path):
                number += 1
                yield line
    except READ_ERRORS as error:
        raise _read_error(f"{path}, after line {number}" if number else str(path), error) from None


def read_text(path: Path, max_bytes: int) -> str:
    """Return the text of a file, plain or gzipped, of at most `max_bytes` when it is expanded."""
    require_file(path)
    try:
        with _open(path) as file:
            raw = file.read(max_bytes + 1)
    except READ_ERRORS as error:
        raise _read_error(str(path), error) from None
    if len(raw) > max_bytes:
        raise DataError(f"{path}: longer than {max_bytes:,} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: {_encoding_problem(raw, 1, error)}") from None


def _open(path: Path) -> BufferedReader:
    return cast(BufferedReader, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _require_text(file: BufferedReader, path: Path) -> None:
    """Raise a DataError if the first bytes of a file are those of another kind of file."""
    start = file.peek(max(map(len, NOT_TEXT)))
    for mark, problem in NOT_TEXT.items():
        if start.startswith(mark):
            raise DataError(f"{path}: {problem}")


def _read_error(place: str, error: Exception) -> DataError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return DataError(f"{place}: cannot be read: {reason}")


def decode_lines(file: BinaryIO, path: Path) -> Iterator[str | BadLine]:
    """Yield the lines of a binary stream without line ends; `path` is its name in messages.

    A line that is not UTF-8, or longer than `MAX_LINE_BYTES`, is yielded as a BadLine. At most that many bytes are in
    memory, whatever a compressed file expands to.
    """
    number = 0
    while raw := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
            yield BadLine(path, number, f"longer than {MAX_LINE_BYTES:,} bytes")
            while raw and not raw.endswith(b"\n"):
                raw = file.readline(MAX_LINE_BYTES)
            continue
        try:
            text = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            yield BadLine(path, number, _encoding_problem(raw, number, error))
            continue
        yield text.removeprefix("\ufeff") if number == 1 else text  # byte-order mark


def _encoding_problem(raw: bytes, number: int, error: UnicodeDecodeError) -> str:
    if number == 1 and raw.startswith(UTF16_MARKS):
        return UTF16
    return f"{NOT_UTF8} (byte {error.start} of the line)"


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file without line ends; a bad line raises a DataError."""
    require_file(path)
    for line in iter_lines(path):
        if isinstance(line, BadLine):
            raise DataError(str(line))
        yield line


def parse_column(text: str) -> int | None:
    """Return the number of a column, counted from 1, or None if the text is not one.

    >>> parse_column(" 3"), parse_column("0"), parse_column("title")
    (3, None, None)
    """
    digits = text.strip()
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS
    return int(digits) or None if is_number else None


def describe_part(split: str, share: float) -> str:
    """Return the part of a split for an error: it holds nothing, and what to do."""
    part = f"the {split} part of the split"
    if not share:
        return part
    why = f"data.split_{split} = {share:g} puts no row there; equal rows are in the same part"
    return f"{part}: {why}; raise it, give more data, or name files in data.{split}"


def assign_split(text: str, valid: float, test: float, seed: int = 0) -> str:
    """Return the split of a text by a hash of its content: equal texts are in the same split.

    Another seed gives another split. With fractions of 0.05 and seed 0 this is the rule of the Tatoeba folders: md5
    modulo 20, 0 for test and 1 for valid.

    >>> [assign_split(word, valid=0.25, test=0.25) for word in ("one", "two", "e")]
    ['train', 'test', 'valid']
    """
    hashed = f"{seed}\n{text}" if seed else text
    number = int.from_bytes(hashlib.md5(hashed.encode("utf-8"), usedforsecurity=False).digest()[:4], "big")
    bucket = number % 20 * (HASH_BUCKETS // 20) + number // 20 % (HASH_BUCKETS // 20)
    if bucket < round(test * HASH_BUCKETS):
        return "test"
    return "valid" if bucket < round((test + valid) * HASH_BUCKETS) else "train"

"""Lines of UTF-8 text files, plain or gzipped; bad lines raise an error or are counted."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from heedful.errors import DataError

MAX_BAD_LINES = 5  # bad lines that a summary lists
EXCERPT_LENGTH = 60  # characters of a bad line that an error quotes
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

    def add(self, bad_line: BadLine) -> None:
        """Raise a DataError for the line, or count it."""
        if self.on_error == "error":
            raise DataError(f'{bad_line} (fix the line, or set data.on_error = "skip" to leave out such lines)')
        self.count += 1
        if len(self.first) < MAX_BAD_LINES:
            self.first.append(str(bad_line))

    def __str__(self) -> str:
        if not self.count:
            return ""
        rest = self.count - len(self.first)
        lines = [f"{self.count:,} bad line(s) skipped:", *(f"  {text}" for text in self.first)]
        return "\n".join([*lines, f"  and {rest:,} more"] if rest else lines)


def require_file(path: Path) -> None:
    """Raise a DataError if `path` is a folder or does not exist."""
    if path.is_dir():
        raise DataError(f"{path} is a folder; expected a text file")
    if not path.exists():
        raise DataError(f"{path}: there is no such file")


def iter_lines(path: Path) -> Iterator[str | BadLine]:
    """Yield the lines of a text file without line ends; a line that is not UTF-8 is yielded as a BadLine."""
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                try:
                    text = raw.decode("utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    yield BadLine(path, number, f"not UTF-8 (byte {error.start} of the line)")
                    continue
                yield text.removeprefix("\ufeff") if number == 1 else text  # byte-order mark
    except (OSError, EOFError, zlib.error) as error:  # also a truncated or invalid gzip file
        raise DataError(f"{path}, after line {number}: cannot be read: {error}") from None


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file without line ends; a line that is not UTF-8 raises a DataError."""
    require_file(path)
    for line in iter_lines(path):
        if isinstance(line, BadLine):
            raise DataError(str(line))
        yield line


def assign_split(text: str, valid: float, test: float) -> str:
    """Return the split of a text by a hash of its content: equal texts are in the same split.

    With fractions of 0.05 this is the rule of the Tatoeba folders: md5 modulo 20, 0 for test and 1 for valid.

    >>> [assign_split(word, valid=0.25, test=0.25) for word in ("one", "two", "e")]
    ['train', 'test', 'valid']
    """
    number = int.from_bytes(hashlib.md5(text.encode("utf-8"), usedforsecurity=False).digest()[:4], "big")
    bucket = number % 20 * (HASH_BUCKETS // 20) + number // 20 % (HASH_BUCKETS // 20)
    if bucket < round(test * HASH_BUCKETS):
        return "test"
    return "valid" if bucket < round((test + valid) * HASH_BUCKETS) else "train"

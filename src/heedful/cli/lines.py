"""Input lines of files or stdin, in chunks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from heedful.errors import DataError

CHUNK = 1_000  # lines per chunk: memory stays bounded, and lines of similar length can share a batch


def check_files(files: Sequence[Path]) -> None:
    """Raise DataError for the first input file that does not exist."""
    from heedful.data.lines import require_file

    for file in files:
        require_file(file)


def count_lines(files: Sequence[Path]) -> int | None:
    """Return the number of input lines, or None for a pipe."""
    from heedful.data.lines import read_lines

    if not files or not all(file.is_file() for file in files):
        return None
    return sum(1 for file in files for _ in read_lines(file))


def read_chunks(files: Sequence[Path]) -> Iterator[list[str]]:
    """Yield the input lines in chunks; on a terminal line by line, so that every line is answered at once."""
    if not files and sys.stdin.isatty():
        print("type one line at a time; end with Ctrl-D", file=sys.stderr)
        for line in _read(files):
            yield [line]
        return
    lines: list[str] = []
    for line in _read(files):
        lines.append(line)
        if len(lines) == CHUNK:
            yield lines
            lines = []
    if lines:
        yield lines


def check_utf8(text: str) -> str:
    """Return an argument of the command line, or raise DataError if it is not UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:  # the shell passed bytes that are not text
        raise DataError(f"the sentence is not UTF-8 (character {error.start + 1})") from None
    return text


def _read(files: Sequence[Path]) -> Iterator[str]:
    from heedful.data.lines import read_lines

    for file in files:
        yield from read_lines(file)
    if files:
        return
    for number, raw in enumerate(sys.stdin.buffer, 1):
        try:
            text = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(f"stdin, line {number}: not UTF-8 (byte {error.start} of the line)") from None
        yield text.removeprefix("\ufeff") if number == 1 else text

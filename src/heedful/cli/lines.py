"""Input lines of files or stdin, in chunks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

import typer

from heedful.errors import DataError

CHUNK = 1_000  # lines per chunk: memory stays bounded, and lines of similar length can share a batch


def check_files(files: Sequence[Path]) -> None:
    """Raise DataError for the first input file that does not exist."""
    from heedful.data.lines import require_file

    for file in files:
        require_file(file)


def count_lines(files: Sequence[Path]) -> int | None:
    """Return the number of input lines for a progress bar; None for a pipe, and where no bar is shown."""
    from heedful.data.lines import iter_lines

    if not files or not sys.stderr.isatty() or not all(file.is_file() for file in files):
        return None
    return sum(1 for file in files for _ in iter_lines(file))


class InputLines:
    """The input lines of a command, in chunks. A line that cannot be read is reported on stderr and counted.

    Such a line is blank in its chunk, so that outputs stay in step with inputs; its number is in `failed`.
    """

    def __init__(self, files: Sequence[Path], chunk: int = CHUNK) -> None:
        self.files, self.chunk = files, chunk
        self.count = self.done = 0  # lines that were read, and lines that were answered
        self.failed: dict[int, str] = {}

    def __iter__(self) -> Iterator[list[str]]:
        """Yield chunks of lines; on a terminal single lines, so that every line is answered at once."""
        interactive = not self.files and sys.stdin.isatty()
        if interactive:
            print("type one line at a time; end with Ctrl-D", file=sys.stderr)
        stream = self._read()
        while lines := list(islice(stream, 1 if interactive else self.chunk)):
            yield lines

    def add_error(self, number: int, record: dict[str, Any]) -> dict[str, Any]:
        """Return the record of a line, with the error if the line could not be read."""
        return {**record, "error": self.failed[number]} if number in self.failed else record

    def exit_if_failed(self) -> None:
        """End the program with status 1 if some lines could not be read."""
        if self.failed:
            print(f"{len(self.failed):,} of {self.count:,} lines could not be read", file=sys.stderr)
            raise typer.Exit(1)

    def _read(self) -> Iterator[str]:
        from heedful.data.lines import BadLine, decode_lines, iter_lines

        streams = [iter_lines(file) for file in self.files] or [decode_lines(sys.stdin.buffer, Path("stdin"))]
        for line in chain.from_iterable(streams):
            self.count += 1
            if isinstance(line, BadLine):
                self.failed[self.count] = str(line)
                print(f"error: {line}", file=sys.stderr)
            yield "" if isinstance(line, BadLine) else line


@contextmanager
def report_timeout(inputs: InputLines) -> Iterator[None]:
    """Report a time limit that has passed, and end the program with status 1: some inputs are not answered."""
    from heedful.errors import DecodingTimeoutError

    try:
        yield
    except DecodingTimeoutError as error:
        print(f"error: --max-seconds: {error}; {inputs.done:,} lines were answered", file=sys.stderr)
        raise typer.Exit(1) from None


def check_utf8(text: str) -> str:
    """Return an argument of the command line, or raise DataError if it is not UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:  # the shell passed bytes that are not text
        raise DataError(f"the sentence is not UTF-8 (character {error.start + 1})") from None
    return text

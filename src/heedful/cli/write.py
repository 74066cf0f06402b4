"""Lines in, lines out: what `translate`, `summarise`, `reply` and `transduce` share."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.cli.progress import writing
from heedful.data.readers import must_be_file, read_lines
from heedful.errors import DataError, ModelError

CHUNK = 1_000  # lines read before they are written: memory stays flat, lengths still find their like


def write(
    task: str,
    files: Sequence[Path],
    models: Sequence[Path],
    asked: Mapping[str, Any],
    as_json: bool,
    int8: bool = False,
    threads: int = 0,
) -> None:
    """Write what the model makes of each line, in order."""
    for file in files:
        must_be_file(file)
    from heedful.tasks.bundled import find
    from heedful.tasks.use import open_models, records, texts

    ready = open_models(find(models, task), int8, threads)
    if ready.task != task:
        raise ModelError(f"{ready.name} was trained to {ready.task}; use heedful {ready.task}")
    how = ready.decoding.model_copy(update=dict(asked))
    if how.n_best > 1 and how.method == "greedy":
        how = how.model_copy(update={"method": "beam", "beam": max(how.beam, how.n_best)})
    with writing(count(files)) as tick:
        first = 1
        for lines in chunks(files):
            if as_json:
                for record in records(ready, lines, how, tick, first):
                    print(json.dumps(record, ensure_ascii=False))
            else:
                for several in texts(ready, lines, how, tick, first):
                    print("\n".join(several))
            sys.stdout.flush()
            first += len(lines)


def count(files: Sequence[Path]) -> int | None:
    """How many lines there are to write; None where only the end of a pipe will tell."""
    if not files or not all(file.is_file() for file in files):
        return None
    return sum(1 for file in files for _ in read_lines(file))


def chunks(files: Sequence[Path]) -> Iterator[list[str]]:
    """Lines in chunks; at a terminal each line by itself, so that one can talk with a model."""
    if not files and sys.stdin.isatty():
        print("one line at a time; end with Ctrl-D", file=sys.stderr)
        for line in _all(files):
            yield [line]
        return
    lines: list[str] = []
    for line in _all(files):
        lines.append(line)
        if len(lines) == CHUNK:
            yield lines
            lines = []
    if lines:
        yield lines


def _all(files: Sequence[Path]) -> Iterator[str]:
    if files:
        for file in files:
            yield from read_lines(file)
        return
    for number, raw in enumerate(sys.stdin.buffer, 1):
        try:
            text = raw.decode("utf-8").rstrip("\r\n")
            yield text.removeprefix("\ufeff") if number == 1 else text
        except UnicodeDecodeError as error:
            raise DataError(f"stdin, line {number}: not UTF-8 (byte {error.start} of the line)") from None

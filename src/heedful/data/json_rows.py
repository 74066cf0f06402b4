"""Rows of JSON: one object or list per line (JSONL), or a file with a list of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from heedful.data.delimited import Record
from heedful.data.lines import EXCERPT_LENGTH, MAX_NAMES, BadLine, iter_lines, read_text, require_file
from heedful.errors import DataError
from heedful.terminal_text import shorten

JSONL_SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
JSON_SUFFIXES = (".json", ".json.gz")
MAX_JSON_BYTES = 256_000_000  # of a JSON file, which is parsed as a whole; the largest of COCO have 150 MB
SAMPLE_LINES = 20  # until a row is found that shows the columns
MISSING = object()


class JsonRows:
    """The rows of a JSONL file, streamed, or of a JSON list, which is parsed as a whole."""

    def __init__(self, path: Path) -> None:
        require_file(path)
        self.path = path
        self.is_list = path.name.lower().endswith(JSON_SUFFIXES) and not _has_object_per_line(path)
        self.rows = _parse_list(path) if self.is_list else None
        beginning = (row.cells for row in islice(self._read(), SAMPLE_LINES) if isinstance(row, Record))
        first = next(beginning, {})
        self.names = tuple(field_names(first)) if isinstance(first, Mapping) else ()
        self.n_columns = len(first)

    def __iter__(self) -> Iterator[Record | BadLine]:
        for row in self._read():
            if isinstance(row, Record) and isinstance(row.cells, list) == bool(self.names):
                expected = "an object with fields" if self.names else "a list of cells"
                excerpt = json.dumps(row.cells, ensure_ascii=False)[:EXCERPT_LENGTH]
                yield BadLine(self.path, row.line, f"expected {expected}, found {excerpt!r}")
            else:
                yield row

    def _read(self) -> Iterator[Record | BadLine]:
        if self.rows is not None:
            for number, row in enumerate(self.rows, 1):
                yield _record(row, self.path, number)
            return
        for number, line in enumerate(iter_lines(self.path), 1):
            if isinstance(line, BadLine):
                yield line
            elif not line.strip():
                yield BadLine(self.path, number, "blank")
            else:
                try:
                    yield _record(json.loads(line), self.path, number)
                except (ValueError, RecursionError) as error:
                    yield BadLine(self.path, number, f"not JSON: {error}")

    def describe(self) -> str:
        """Return a line for the log: the fields of the first row."""
        fields = (
            f"fields: {shorten(', '.join(self.names), MAX_NAMES)}"
            if self.names
            else f"lists of {self.n_columns} cell(s)"
        )
        return f"{self.path.name}: JSON, {fields}"


def _record(value: object, path: Path, number: int) -> Record | BadLine:
    if isinstance(value, dict | list):
        return Record(number, value)
    excerpt = json.dumps(value, ensure_ascii=False)[:EXCERPT_LENGTH]
    return BadLine(path, number, f"expected an object with fields, found {excerpt!r}")


def _has_object_per_line(path: Path) -> bool:
    """Return whether the first two lines that are not blank are objects or lists of their own: JSON Lines."""
    lines = (line for line in iter_lines(path) if isinstance(line, BadLine) or line.strip())
    first = list(islice(lines, 2))
    try:
        values = [json.loads(line) for line in first if not isinstance(line, BadLine)]
    except (ValueError, RecursionError):
        return False
    return len(values) == 2 and all(isinstance(value, dict | list) for value in values)


def _parse_list(path: Path) -> list[Any]:
    text = read_text(path, MAX_JSON_BYTES)
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON: {error}") from None
    if isinstance(tree, dict):  # such as {"version": 1, "data": [...]}
        lists = [value for value in tree.values() if isinstance(value, list)]
        tree = lists[0] if len(lists) == 1 else tree
    if not isinstance(tree, list):
        raise DataError(f"{path}: expected a list of objects, or one object per line in a file named .jsonl")
    return tree


def field_names(cells: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the names of all fields, those of nested objects as `outer.inner`.

    >>> list(field_names({"id": 1, "translation": {"en": "tea", "vi": "trà"}}))
    ['id', 'translation.en', 'translation.vi']
    """
    for name, value in cells.items():
        if isinstance(value, Mapping) and value and prefix.count(".") < 8:
            yield from field_names(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def look_up(cells: Mapping[str, Any], name: str) -> object:
    """Return the value of a field, or of a field of a nested object (`translation.en`), or MISSING.

    >>> look_up({"translation": {"en": "tea"}}, "translation.en"), look_up({"a.b": 1}, "a.b")
    ('tea', 1)
    """
    if name in cells:
        return cells[name]
    value: object = cells
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return MISSING
        value = value[part]
    return value

"""The lines of text files, or of one column of a table, for language models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from heedful.config import DataConfig
from heedful.data.lines import BadLine, BadLines, assign_split, describe_part, iter_lines, require_file
from heedful.data.pairs import world_pairs
from heedful.data.paths import locate
from heedful.data.tables import Row, Table, is_table
from heedful.errors import DataError


class LineFile:
    """The non-blank lines of a text file, or of one column of a table, read anew at each iteration.

    `split` ("train", "valid" or "test") selects one part of a split by hash, "" all lines. `bad_lines` describes
    what the last iteration skipped.
    """

    def __init__(self, path: Path, data: DataConfig | None = None, split: str = "") -> None:
        require_file(path)
        self.path, self.split = path, split
        self.data = data if data is not None else DataConfig.model_construct()
        reads_column = bool(self.data.columns) or (is_table(path) and not path.name.endswith((".tsv", ".tsv.gz")))
        self.table = Table(path, ("text",), self.data) if reads_column else None
        self.bad_lines = BadLines()

    def __str__(self) -> str:
        return str(self.path)

    def __iter__(self) -> Iterator[str]:
        self.bad_lines = BadLines(self.data.on_error)
        empty = True
        lines = iter_lines(self.path) if self.table is None else _column_lines(self.table)
        for line in lines:
            if isinstance(line, BadLine):
                self.bad_lines.add(line, lines)
            elif line.strip() and (not self.split or self._split_of(line) == self.split):
                empty = False
                yield line
        if empty:
            share = getattr(self.data, f"split_{self.split}", 0.0)
            selection = f" ({describe_part(self.split, share)})" if self.split else ""
            raise DataError("\n".join(filter(None, [f"{self}: contains no text{selection}", str(self.bad_lines)])))

    def _split_of(self, line: str) -> str:
        return assign_split(line, self.data.split_valid, self.data.split_test, self.data.split_seed)


def _column_lines(table: Table) -> Iterator[str | BadLine]:
    """Yield the texts of the first column; line breaks within a text begin a new line."""
    for row in table:
        if isinstance(row, Row):
            yield from row.texts[0].splitlines()
        elif row is not None and not row.reason.endswith("blank"):
            yield row


def describe_lines(splits: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a line for the log about each table of the training and validation data."""
    files = [splits[name] for name in ("train", "valid") if name in splits]
    tables = [lines.table for lines in files if isinstance(lines, LineFile) and lines.table is not None]
    return list(dict.fromkeys(table.describe() for table in tables))


def open_lines(data: DataConfig, base: Path) -> dict[str, Iterable[str]]:
    """Return the lines of every split of a recipe; in a generated world they are the source sentences."""
    if data.world is not None:
        return {split: [pair.source for pair in pairs] for split, pairs in world_pairs(data.world).items()}
    shares = {"valid": data.split_valid, "test": data.split_test}
    train = locate(data.train[0], base)
    splits: dict[str, Iterable[str]] = {"train": LineFile(train, data, "train" if any(shares.values()) else "")}
    for split, files in (("valid", data.valid), ("test", data.test)):
        if files:
            splits[split] = LineFile(locate(files[0], base), data)
        elif shares[split]:
            splits[split] = LineFile(train, data, split)
    return splits

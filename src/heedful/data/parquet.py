"""Rows of Parquet files, a batch at a time; needs the extra `heedful[parquet]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from heedful.data.delimited import Record
from heedful.data.json_rows import field_names
from heedful.data.lines import MAX_NAMES, require_file
from heedful.errors import DataError
from heedful.terminal_text import shorten

BATCH_ROWS = 1_000  # read at a time


class ParquetRows:
    """The rows of a Parquet file; nested columns are named `outer.inner`."""

    def __init__(self, path: Path) -> None:
        require_file(path)
        self.path = path
        first = next(iter(self), None)
        schema_names = tuple(self._open().schema_arrow.names)
        self.names = (
            tuple(field_names(first.cells)) if first is not None and isinstance(first.cells, Mapping) else schema_names
        )
        self.n_columns = len(self.names)

    def _open(self) -> Any:
        try:
            from pyarrow import parquet
        except ImportError:
            raise DataError(f"{self.path}: Parquet needs pyarrow: pip install 'heedful[parquet]'") from None
        try:
            return parquet.ParquetFile(self.path)
        except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
            raise DataError(f"{self.path}: not a Parquet file: {str(error).splitlines()[0]}") from None

    def __iter__(self) -> Iterator[Record]:
        number = 0
        with self._open() as file:
            try:
                for batch in file.iter_batches(batch_size=BATCH_ROWS):
                    for cells in batch.to_pylist():
                        number += 1
                        yield Record(number, cells)
            except (OSError, ValueError) as error:
                raise DataError(f"{self.path}, after row {number}: cannot be read: {error}") from None

    def describe(self) -> str:
        """Return a line for the log: the columns."""
        return f"{self.path.name}: Parquet, columns: {shorten(', '.join(self.names), MAX_NAMES)}"

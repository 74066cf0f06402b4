"""Data of a Python call as the files that recipes and tasks read: names of files, tables and datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from heedful.data.frames import store_table
from heedful.errors import DataError

PAIRED_TASKS = ("caption", "recommend")  # two tables: images and captions, ratings and titles
COLUMNS = {  # of tasks with two, for messages
    **dict.fromkeys(("translate", "summarize", "reply", "transduce"), ("source", "target")),
    "classify": ("text", "label"),
}
MIN_COLUMN, SAMPLE = 3, 10  # two lists of two values may be two rows; values that are looked at


def data_files(data: Any, task: str) -> list[str]:
    """Return the files of training or test data; tables and lists are written to the cache folder first.

    A tuple of two is a source and a target file; for `caption` a folder of images and the captions, for `recommend`
    the ratings and the titles.
    """
    if isinstance(data, str | Path):
        return [_absolute(data)]
    data = _as_rows(data, task)
    if isinstance(data, tuple) and len(data) == 2 and (task in PAIRED_TASKS or all(map(_is_name, data))):
        return [_absolute(part) if _is_name(part) else str(store_table(part)) for part in data]
    if isinstance(data, list) and 0 < len(data) <= 2 and task != "read" and all(map(_is_file, data)):
        return [_absolute(name) for name in data]
    if isinstance(data, list | tuple) and task in COLUMNS and any(isinstance(row, str) for row in data[:1]):
        expected = ", ".join(f'"{name}"' for name in COLUMNS[task])
        raise DataError(f'data: expected rows such as ({expected}), or names of files; got text: "{data[0][:40]}"')
    return [str(store_table(data))]


def _as_rows(data: Any, task: str) -> Any:
    """Return a tuple of two columns, such as (texts, labels), as rows; anything else as it is.

    >>> _as_rows((["good", "bad", "dull"], [1, 0, 0]), "classify")
    [('good', 1), ('bad', 0), ('dull', 0)]
    """
    if task not in COLUMNS or not isinstance(data, tuple) or len(data) != 2 or not all(map(_is_column, data)):
        return data
    first, second = map(list, data)
    if len(first) != len(second):
        raise DataError(f"data: two columns of different length, {len(first):,} and {len(second):,}")
    return list(zip(first, second, strict=True))


def _is_column(values: object) -> bool:
    """Return whether an object is a list, an array or a series of more than two single values."""
    is_list = isinstance(values, list) or hasattr(values, "to_list") or getattr(values, "ndim", 0) == 1
    if not is_list or len(values) < MIN_COLUMN:  # type: ignore[arg-type]
        return False
    return not any(isinstance(value, list | tuple | Mapping) for value in islice(values, SAMPLE))  # type: ignore[call-overload]


def evaluation_files(data: Any, task: str, columns: Sequence[object]) -> list[str]:
    """Return the files of test data for a model whose recipe names these columns; rows without names get them."""
    data = _as_rows(data, task)
    named = columns and all(isinstance(column, str) for column in columns)
    if named and isinstance(data, list | tuple) and data and all(isinstance(row, list | tuple) for row in data):
        data = [dict(zip(map(str, columns), row, strict=False)) for row in data]
    return data_files(data, task)


def _is_name(value: object) -> bool:
    return isinstance(value, str | Path)


def _is_file(value: object) -> bool:
    return isinstance(value, str | Path) and Path(value).is_file()


def _absolute(name: str | Path) -> str:
    """Return a name as a recipe stores it; those of the data folder (`data:...`) are looked up there."""
    text = str(name)
    return text if text.startswith(("data:", "runs:")) else str(Path(text).absolute())


def split_files(splits: Mapping[str, Any], task: str) -> dict[str, list[str]]:
    """Return the files of each split that is not None."""
    return {name: data_files(data, task) for name, data in splits.items() if data is not None}

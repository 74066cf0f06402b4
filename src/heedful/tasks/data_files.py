"""Data of a Python call as the files that recipes and tasks read: names of files, tables and datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.data.frames import store_table

PAIRED_TASKS = ("caption", "recommend")  # two tables: images and captions, ratings and titles


def data_files(data: Any, task: str) -> list[str]:
    """Return the files of training or test data; tables and lists are written to the cache folder first.

    A tuple of two is a source and a target file; for `caption` a folder of images and the captions, for `recommend`
    the ratings and the titles.
    """
    if isinstance(data, str | Path):
        return [_absolute(data)]
    if isinstance(data, tuple) and len(data) == 2 and (task in PAIRED_TASKS or all(map(_is_name, data))):
        return [_absolute(part) if _is_name(part) else str(store_table(part)) for part in data]
    if isinstance(data, list) and 0 < len(data) <= 2 and task != "read" and all(map(_is_file, data)):
        return [_absolute(name) for name in data]
    return [str(store_table(data))]


def evaluation_files(data: Any, task: str, columns: Sequence[object]) -> list[str]:
    """Return the files of test data for a model whose recipe names these columns; rows without names get them."""
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

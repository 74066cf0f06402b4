"""Where data lies: beside the recipe, or under the data folder as `data:NAME/file`."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from heedful.errors import DataError, nearest

PREFIX = "data:"


def data_folder() -> Path:
    """`HEEDFUL_DATA` if set, else the user's data directory."""
    named = os.environ.get("HEEDFUL_DATA")
    return Path(named) if named else Path(platformdirs.user_data_dir("heedful"))


def cache_folder() -> Path:
    """`HEEDFUL_CACHE` if set, else the user's cache directory: what can be computed again."""
    named = os.environ.get("HEEDFUL_CACHE")
    return Path(named) if named else Path(platformdirs.user_cache_dir("heedful"))


def _placed(name: str, base: Path) -> Path:
    return data_folder() / name.removeprefix(PREFIX) if name.startswith(PREFIX) else base / name


def locate(name: str, base: Path) -> Path:
    """The file a recipe names; a file that is not there is an error that says what lies beside it."""
    path = _placed(name, base)
    if path.is_file():
        return path
    if path.is_dir():
        raise DataError(f"{path} is a folder; a data file was expected")
    raise _missing(path, name)


def locate_folder(name: str, base: Path) -> Path:
    """The folder a recipe names."""
    path = _placed(name, base)
    if path.is_dir():
        return path
    if path.is_file():
        raise DataError(f"{path} is a file; a folder was expected")
    raise _missing(path, name)


def _missing(path: Path, name: str) -> DataError:
    beside = sorted(p.name for p in path.parent.iterdir()) if path.parent.is_dir() else []
    hint = f"; {nearest(path.name, beside)}" if beside else f"; the folder {path.parent} is not there either"
    if name.startswith(PREFIX):
        given = os.environ.get("HEEDFUL_DATA")
        hint += f" (HEEDFUL_DATA is {given})" if given else " (the data folder can be named by HEEDFUL_DATA)"
    return DataError(f"{path} is not there{hint}")

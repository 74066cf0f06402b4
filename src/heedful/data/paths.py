"""Paths in recipes: relative to the recipe, `data:NAME/file` in the data folder, or `runs:NAME` in the runs folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import platformdirs

from heedful.errors import DataError, nearest


def data_folder() -> Path:
    """Return `HEEDFUL_DATA` if set, else the user's data directory."""
    return _from_environment("HEEDFUL_DATA") or Path(platformdirs.user_data_dir("heedful"))


def cache_folder() -> Path:
    """Return `HEEDFUL_CACHE` if set, else the user's cache directory; its files can be computed again."""
    return _from_environment("HEEDFUL_CACHE") or Path(platformdirs.user_cache_dir("heedful"))


def runs_folder() -> Path:
    """Return `HEEDFUL_RUNS` if set, else `runs` in the user's cache directory; it holds trained models."""
    return _from_environment("HEEDFUL_RUNS") or Path(platformdirs.user_cache_dir("heedful")) / "runs"


def _from_environment(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value) if value else None


MAX_FILES_LISTED = 8  # of a folder, in an error
PREFIXES: dict[str, tuple[str, Callable[[], Path]]] = {
    "data:": ("HEEDFUL_DATA", data_folder),
    "runs:": ("HEEDFUL_RUNS", runs_folder),
}


def has_prefix(name: str) -> bool:
    """Return True if a name begins with `data:` or `runs:`, so that it does not depend on the recipe's folder."""
    return name.startswith(tuple(PREFIXES))


def resolve(name: str, base: Path) -> Path:
    """Return the path that a name in a recipe stands for, which may not exist; `base` is the recipe's folder."""
    for prefix, (_, folder) in PREFIXES.items():
        if name.startswith(prefix):
            return folder() / name.removeprefix(prefix)
    return base / name


def locate(name: str, base: Path) -> Path:
    """Return the path of an existing file that a recipe names; the error for a missing file suggests similar names."""
    path = resolve(name, base)
    try:
        if path.is_file():
            return path
        if path.is_dir():
            raise DataError(f"{path} is a folder; expected a data file")
    except OSError as error:  # a name that is too long, a folder that may not be searched
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    raise _missing(path, name)


def locate_folder(name: str, base: Path) -> Path:
    """Return the path of an existing folder that a recipe names."""
    path = resolve(name, base)
    try:
        if path.is_dir():
            return path
        if path.is_file():
            raise DataError(f"{path} is a file; expected a folder")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    raise _missing(path, name)


def _missing(path: Path, name: str) -> DataError:
    siblings: list[str] = []
    with suppress(OSError):
        siblings = sorted(p.name for p in path.parent.iterdir()) if path.parent.is_dir() else []
    hint = (
        f"; {nearest(path.name, siblings, MAX_FILES_LISTED)}"
        if siblings
        else f"; neither does the folder {path.parent}"
    )
    for prefix, (variable, _) in PREFIXES.items():
        if name.startswith(prefix):
            value = os.environ.get(variable)
            hint += f" ({variable} is {value})" if value else f" (set {variable} to the folder of `{prefix}` paths)"
    return DataError(f"{path} does not exist{hint}")

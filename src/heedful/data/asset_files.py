"""The migration table of file names in model folders: the names of format 2, and what they were in format 1."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

FILE_NAMES: Mapping[str, str] = {  # name in format 2 -> name in format 1
    "backbone.json": "pictures.json",
    "catalog.npz": "catalogue.npz",
}


def asset_file(folder: Path, name: str) -> Path:
    """Return the path of an asset; in a folder of format 1 under its old name."""
    path = folder / name
    old = folder / FILE_NAMES.get(name, name)
    return old if not path.exists() and old.exists() else path

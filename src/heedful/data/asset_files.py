"""Names of asset files in model folders, in format 2 and in format 1."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

FILE_NAMES: Mapping[str, str] = {  # name in format 2 -> name in format 1
    "backbone.json": "pictures.json",
    "catalog.npz": "catalogue.npz",
}


def asset_file(folder: Path, name: str) -> Path:
    """Return the path of an asset file, under its old name if the folder has format 1."""
    path = folder / name
    old = folder / FILE_NAMES.get(name, name)
    return old if not path.exists() and old.exists() else path

"""Asset files of model folders: their names in format 2 and in format 1, and how they are read.

A model folder may be a stranger's: links out of it are not followed, and files are read up to a limit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.errors import ModelError

MAX_JSON_BYTES = 32_000_000  # vocabularies of half a million subwords have less
FILE_NAMES: Mapping[str, str] = {  # name in format 2 -> name in format 1
    "backbone.json": "pictures.json",
    "catalog.npz": "catalogue.npz",
}
RESUME_DIR, CHECKPOINT = "resume", "step"  # folder of an unfinished training, and how its checkpoints are named


def has_checkpoint(folder: Path) -> bool:
    """Return True if `folder/resume` holds a checkpoint."""
    return any((folder / RESUME_DIR).glob(f"{CHECKPOINT}-*.pt"))


def asset_file(folder: Path, name: str) -> Path:
    """Return the path of an asset file, under its old name if the folder has format 1.

    A link to a file outside the folder raises ModelError.
    """
    path, old = folder / name, folder / FILE_NAMES.get(name, name)
    chosen = old if not path.exists() and old.exists() else path
    if chosen.is_symlink() and folder.resolve() not in chosen.resolve().parents:
        raise ModelError(f"{chosen}: a link out of the model folder, which is not followed; copy the file instead")
    return chosen


def is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8; halves of surrogate pairs, which JSON and NumPy allow, cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def read_json(path: Path, max_bytes: int = MAX_JSON_BYTES) -> Any:
    """Return the content of a JSON file; raise ValueError if it is too large or not valid, OSError if unreadable."""
    with path.open("rb") as file:
        raw = file.read(max_bytes + 1)
    if len(raw) > max_bytes:
        raise ValueError(f"larger than {max_bytes:,} bytes")
    try:
        return json.loads(raw)
    except RecursionError:
        raise ValueError("nested too deeply") from None

"""The card of a model folder, `model.json`: what it says, and whether the files are those that it lists."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from heedful.data.asset_files import asset_file, has_checkpoint, read_json
from heedful.errors import ModelError

FORMAT = 2  # format 1 is read through config/migrate.py, models/migrate.py, data/asset_files.py and CARD_KEYS
CARD, RECIPE, WEIGHTS = "model.json", "recipe.toml", "model.safetensors"
CARD_KEYS = {"figures": "metrics", "ended": "stopped_by", "licence": "license"}  # format 1 -> format 2
MAX_CARD_BYTES = 1_000_000
MAX_WEIGHT = 1e15  # of trained models the largest are some thousands; a flipped bit of an exponent makes 1e38
REPAIR_HINT = "copy the folder again, or train the model again"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_numbers(value: Any) -> bool:
    numbers = value.values() if isinstance(value, dict) else [None]
    return all(type(number) in (int, float) for number in numbers)


def _is_hashes(value: Any) -> bool:
    entries = value.items() if isinstance(value, dict) else [("", None)]
    return all(name and Path(name).name == name and isinstance(digest, str) for name, digest in entries)


FIELDS: Mapping[str, Callable[[Any], bool]] = {  # whether a value can stand there; all but the task may be missing
    "task": _is_text,
    "parameters": _is_count,
    "metrics": _is_numbers,
    "test": _is_numbers,
    "sha256": lambda value: value is None or _is_text(value),
    "files": _is_hashes,
    "self_test": lambda value: isinstance(value, dict),
    **dict.fromkeys(("stopped_by", "about", "test_on", "limits", "license", "attribution"), _is_text),
}


def is_finished(folder: Path) -> bool:
    """Return whether a folder holds a finished model."""
    return (folder / CARD).is_file()


def read_card(folder: Path) -> dict[str, Any]:
    """Return the content of `model.json`; raise ModelError if it is damaged or of a newer format."""
    if not folder.is_dir():
        reason = "is a file; a model is a folder" if folder.is_file() else "no such model folder"
        raise ModelError(f"{folder}: {reason}")
    path = asset_file(folder, CARD)
    if not path.is_file():
        hint = "; training is not finished; resume it with heedful train" if has_checkpoint(folder) else ""
        raise ModelError(f"{folder}: not a finished model: {CARD} is missing{hint}")
    try:
        card = read_json(path, MAX_CARD_BYTES)
        version = card["format"]
    except (OSError, ValueError, KeyError, TypeError):
        raise ModelError(f"{path}: damaged: not a model card; {REPAIR_HINT}") from None
    if type(version) is not int or version not in (1, FORMAT):
        hint = "update heedful" if type(version) is int and version > FORMAT else REPAIR_HINT
        raise ModelError(f"{path}: format {version!r}, but this version of heedful reads formats 1 to {FORMAT}; {hint}")
    card = migrate_card(card) if version == 1 else card
    wrong = [key for key, fits in FIELDS.items() if (key in card or key == "task") and not fits(card.get(key))]
    if wrong:
        raise ModelError(f'{path}: damaged: "{wrong[0]}" is missing or of a wrong type; {REPAIR_HINT}')
    return dict(card)


def migrate_card(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return a card of format 1 with the keys of format 2; its exact match was a fraction, and becomes a percentage.

    >>> migrate_card({"format": 1, "figures": {"exact": 0.25, "bleu": 40.5}})
    {'format': 1, 'metrics': {'exact': 25.0, 'bleu': 40.5}}
    """
    migrated = {CARD_KEYS.get(key, key): value for key, value in card.items()}
    metrics = migrated.get("metrics")
    if isinstance(metrics, dict) and isinstance(metrics.get("exact"), int | float):
        migrated["metrics"] = {**metrics, "exact": 100 * metrics["exact"]}
    return migrated


def hash_files(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of a model folder that is not finished yet, by name, for the card."""
    return {path.name: hash_file(path) for path in sorted(folder.iterdir()) if path.is_file() and path.name != CARD}


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_weights(folder: Path, card: Mapping[str, Any]) -> str:
    """Return the hash of the weights file: the card's, which loading has checked."""
    listed = card.get("files", {}).get(WEIGHTS) or card.get("sha256")
    return str(listed) if listed else hash_file(asset_file(folder, WEIGHTS))


def check_files(folder: Path, card: Mapping[str, Any]) -> int:
    """Return the number of files that are as the card says; raise ModelError for one that was changed.

    Cards of the first versions list the weights only, or nothing.
    """
    first = {} if card.get("sha256") is None else {WEIGHTS: card["sha256"]}
    key = "files" if "files" in card else "sha256"
    listed: Mapping[str, str] = card.get("files", first)
    for name, digest in listed.items():
        path = asset_file(folder, name)
        if not path.is_file():
            raise ModelError(f"{folder}: incomplete: {name} is missing; {REPAIR_HINT}")
        if hash_file(path) != digest:
            entry = f'"{key}"' if key == "sha256" else f'its entry in "{key}"'
            raise ModelError(
                f"{path}: damaged: its SHA-256 differs from the card's; {REPAIR_HINT}"
                f" (changed on purpose? remove {entry} from {CARD})"
            )
    return len(listed)

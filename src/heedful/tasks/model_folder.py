"""A model is a folder: recipe, weights, assets and a card. Loading one runs no code from it."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import load_file
from safetensors.torch import save_model as save_model_weights
from torch import Tensor

from heedful.atomic_write import sync_file
from heedful.config import Recipe, load_recipe, recipe_toml
from heedful.data.asset_files import asset_file
from heedful.errors import ConfigError, ModelError
from heedful.models.migrate import migrate_weights
from heedful.tasks.base import WEIGHTS, Assets, LoadedModel, hash_weights
from heedful.tasks.registry import get_task
from heedful.training.checkpoint_store import has_checkpoint

FORMAT = 2  # format 1 is read through config/migrate.py, models/migrate.py, data/asset_files.py and CARD_KEYS
RECIPE, CARD = "recipe.toml", "model.json"
DRAFTS = ".model.*.tmp"  # folders in which a model is written before its files are renamed
CARD_KEYS = {"figures": "metrics", "ended": "stopped_by", "licence": "license"}  # format 1 -> format 2
REPAIR_HINT = "copy the folder again, or train the model again"


def save_model(
    folder: Path,
    recipe: Recipe,
    assets: Assets,
    model: torch.nn.Module,
    metrics: Mapping[str, float],
    reason: str = "",
) -> None:
    """Write a finished model. The card is written last: a folder without it is not a finished model."""
    folder.mkdir(parents=True, exist_ok=True)
    for killed in folder.glob(DRAFTS):  # of a process that was killed here; the caller holds the folder's lock
        shutil.rmtree(killed)
    draft = Path(tempfile.mkdtemp(prefix=".model.", suffix=".tmp", dir=folder))
    try:
        _write_files(draft, recipe, assets, model, metrics, reason)
        for path in sorted(draft.iterdir(), key=lambda p: p.name == CARD):
            sync_file(path)
            path.replace(folder / path.name)
    except (OSError, safetensors.SafetensorError) as error:  # safetensors reports a full disk as its own error
        detail = error.strerror if isinstance(error, OSError) else error
        raise ModelError(f"{folder}: the model cannot be written: {detail}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write_files(
    draft: Path,
    recipe: Recipe,
    assets: Assets,
    model: torch.nn.Module,
    metrics: Mapping[str, float],
    reason: str,
) -> None:
    (draft / RECIPE).write_text(recipe_toml(recipe), encoding="utf-8")
    save_model_weights(model, str(draft / WEIGHTS))  # writes tensors shared by several modules once
    shutil.copymode(draft / RECIPE, draft / WEIGHTS)  # safetensors makes it readable by the owner only
    assets.save(draft)
    card = {
        "format": FORMAT,
        "task": recipe.task.kind,
        "parameters": sum(p.numel() for p in model.parameters()),
        "vocabulary": assets.sizes(),
        "metrics": dict(metrics),
        "stopped_by": reason,
        "sha256": hash_weights(draft),
    }
    (draft / CARD).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")


def is_finished(folder: Path) -> bool:
    """Return whether a folder holds a finished model."""
    return (folder / CARD).is_file()


def read_card(folder: Path) -> dict[str, Any]:
    """Return the content of `model.json`; raise ModelError if it is damaged or of a newer format."""
    if not folder.is_dir():
        reason = "is a file; a model is a folder" if folder.is_file() else "no such model folder"
        raise ModelError(f"{folder}: {reason}")
    path = folder / CARD
    if not path.is_file():
        hint = "; training is not finished; resume it with heedful train" if has_checkpoint(folder) else ""
        raise ModelError(f"{folder}: not a finished model: {CARD} is missing{hint}")
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
        version = card["format"]
    except (ValueError, KeyError, TypeError):
        raise ModelError(f"{path}: damaged: not a model card; {REPAIR_HINT}") from None
    if version not in (1, FORMAT):
        newer = isinstance(version, int) and version > FORMAT
        hint = "update heedful" if newer else REPAIR_HINT
        raise ModelError(f"{path}: format {version!r}, but this version of heedful reads formats 1 to {FORMAT}; {hint}")
    return migrate_card(card) if version == 1 else dict(card)


def migrate_card(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return a card of format 1 with the keys of format 2; its exact match was a fraction, and becomes a percentage.

    >>> migrate_card({"format": 1, "figures": {"exact": 0.25, "bleu": 40.5}})
    {'format': 1, 'metrics': {'exact': 25.0, 'bleu': 40.5}}
    """
    migrated = {CARD_KEYS.get(key, key): value for key, value in card.items()}
    metrics = migrated.get("metrics", {})
    if "exact" in metrics:
        migrated["metrics"] = {**metrics, "exact": 100 * metrics["exact"]}
    return migrated


def load_model(folder: Path) -> LoadedModel[Any, Any]:
    """Load a model folder; errors name the missing or damaged file."""
    card = read_card(folder)
    _require(folder, RECIPE)
    try:
        recipe = load_recipe(folder / RECIPE).recipe
    except ConfigError as error:
        raise ModelError(f"{folder}: this version of heedful cannot use its recipe:\n{error}") from None
    task = get_task(recipe.task.kind)
    _require(folder, WEIGHTS, *task.files)
    try:
        assets = task.load_assets(folder)
    except ModelError as error:
        raise ModelError(f"{error}; {REPAIR_HINT}") from None
    model = task.build(recipe, assets)
    try:
        load_weights(model, folder)
    except (safetensors.SafetensorError, RuntimeError) as error:
        lines = str(error).splitlines()  # torch's first line only announces the others
        reason = next((line.strip() for line in lines if not line.endswith(":")), lines[0])
        raise ModelError(
            f"{folder / WEIGHTS}: damaged, or does not match its recipe: {reason}; {REPAIR_HINT}"
        ) from None
    if card.get("sha256") not in (None, hash_weights(folder)):
        raise ModelError(
            f"{folder / WEIGHTS}: damaged: its SHA-256 differs from the card's; {REPAIR_HINT}"
            f' (changed on purpose? remove "sha256" from {CARD})'
        )
    model.eval()
    return LoadedModel(folder.name, recipe, assets, model, card, folder)


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Return the weights of a model folder under their names in format 2."""
    weights = load_file(folder / WEIGHTS)
    return migrate_weights(weights) if read_card(folder)["format"] == 1 else weights


def load_weights(model: torch.nn.Module, folder: Path) -> None:
    """Load the weights of a model folder; of names that share one tensor the file holds only one."""
    weights = read_weights(folder)
    missing, unexpected = model.load_state_dict(weights, strict=False)
    tensors = model.state_dict(keep_vars=True)
    loaded = {id(tensor) for name, tensor in tensors.items() if name in weights}
    missing = [name for name in missing if id(tensors[name]) not in loaded]
    if missing or unexpected:
        raise RuntimeError(f"missing weights: {missing or 'none'}, unexpected weights: {unexpected or 'none'}")


def load_model_for(folder: Path, task: str) -> LoadedModel[Any, Any]:
    """Load a model folder; raise ModelError if the model is for another task."""
    loaded = load_model(folder)
    check_task(loaded.name, loaded.recipe.task.kind, task)
    return loaded


def check_task(name: str, kind: str, task: str) -> None:
    """Raise ModelError if a model trained for the task `kind` cannot do `task`."""
    if not isinstance(get_task(kind), type(get_task(task))):
        raise ModelError(f"{name} was trained to {kind}; use heedful {kind}")


def _require(folder: Path, *names: str) -> None:
    for name in names:
        if not asset_file(folder, name).is_file():
            raise ModelError(f"{folder}: incomplete: {name} is missing; {REPAIR_HINT}")

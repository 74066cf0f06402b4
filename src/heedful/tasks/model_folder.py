"""A model is a folder: recipe, weights, assets and a card.

A folder may be a stranger's. Loading it runs no code from it, opens no file outside it (the data that its recipe names
is read only by commands that evaluate on it), and compares the sizes that its recipe asks for with the header of the
weights before it takes memory for them.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import load_file
from safetensors.torch import save_model as save_model_weights
from torch import Tensor, nn

from heedful.atomic_write import atomic_write, sync_file
from heedful.config import Recipe, load_recipe, recipe_toml
from heedful.data.asset_files import asset_file
from heedful.errors import ConfigError, ModelError
from heedful.models.migrate import migrate_weights
from heedful.tasks.base import Assets, LoadedModel, Task
from heedful.tasks.model_card import (
    CARD,
    FORMAT,
    MAX_WEIGHT,
    RECIPE,
    REPAIR_HINT,
    WEIGHTS,
    check_files,
    hash_files,
    read_card,
)
from heedful.tasks.registry import get_task
from heedful.tasks.self_test import make_self_test

DRAFTS = ".model.*.tmp"  # folders in which a model is written before its files are renamed
MAX_HEADER_BYTES = 10_000_000  # of the weights; a model of a thousand tensors has 100 kB
MAX_LISTED = 3  # weights that an error names


def save_model(
    folder: Path,
    recipe: Recipe,
    assets: Assets,
    model: nn.Module,
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


def copy_model(folder: Path, to: Path) -> None:
    """Copy a finished model; the card is written last. The folder must be new, empty, or hold the same model."""
    card = read_card(folder)
    if to.exists() and not to.is_dir():
        raise ModelError(f"{to} is a file; a model is a folder")
    if to.is_dir() and any(to.iterdir()) and not ((to / CARD).is_file() and read_card(to) == card):
        raise ModelError(f"{to}: the folder is not empty; choose another one, or remove it")
    files = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    try:
        to.mkdir(parents=True, exist_ok=True)
        for path in sorted(files, key=lambda p: p.name == CARD):
            with atomic_write(to / path.name, ModelError) as draft:
                shutil.copyfile(path, draft)
    except OSError as error:
        raise ModelError(f"{to}: the model cannot be written: {error.strerror}") from None


def _write_files(
    draft: Path,
    recipe: Recipe,
    assets: Assets,
    model: nn.Module,
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
        "files": hash_files(draft),
        "self_test": make_self_test(recipe, assets, model),
    }
    card = {key: value for key, value in card.items() if value is not None}
    (draft / CARD).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")


def load_model(folder: Path) -> LoadedModel[Any, Any]:
    """Load a model folder; errors name the missing or damaged file."""
    card = read_card(folder)
    _require(folder, RECIPE, WEIGHTS)
    check_files(folder, card)
    try:
        recipe = load_recipe(folder / RECIPE).recipe
    except ConfigError as error:
        raise ModelError(f"{folder}: this version of heedful cannot use its recipe:\n{error}") from None
    task = get_task(recipe.task.kind)
    _require(folder, *task.files)
    try:
        assets = task.load_assets(folder)
    except ModelError as error:
        raise ModelError(f"{error}; {REPAIR_HINT}") from None
    try:
        _check_shapes(task, recipe, assets, folder)
        model = task.build(recipe, assets)
        load_weights(model, folder)
    except (safetensors.SafetensorError, RuntimeError, ValueError, OverflowError) as error:
        lines = str(error).splitlines()  # torch's first line only announces the others
        reason = next((line.strip() for line in lines if not line.endswith(":")), "".join(lines[:1]))
        raise ModelError(
            f"{folder / WEIGHTS}: damaged, or does not match its recipe: {reason}; {REPAIR_HINT}"
        ) from None
    model.eval()
    return LoadedModel(folder.name, recipe, assets, model, card, folder)


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Return the weights of a model folder under their names in format 2."""
    weights = load_file(asset_file(folder, WEIGHTS))
    return migrate_weights(weights) if read_card(folder)["format"] == 1 else weights


def read_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the weights of a model folder, from the header of the file."""
    path = asset_file(folder, WEIGHTS)
    with path.open("rb") as file:
        if int.from_bytes(file.read(8), "little") > MAX_HEADER_BYTES:
            raise ValueError(f"its header is longer than {MAX_HEADER_BYTES:,} bytes")
    with safetensors.safe_open(path, "pt") as opened:
        shapes = {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118
    return migrate_weights(shapes) if read_card(folder)["format"] == 1 else shapes


def _check_shapes(task: Task, recipe: Recipe, assets: Any, folder: Path) -> None:
    """Raise RuntimeError if the file has other weights than a model of this recipe, before any memory is taken."""
    shapes = read_shapes(folder)
    try:
        with torch.device("meta"):
            model = task.build(recipe, assets)
    except NotImplementedError:  # a registered task whose model needs real numbers to be built
        return
    tensors = model.state_dict(keep_vars=True)
    for name, shape in shapes.items():
        if name in tensors and tensors[name].shape != shape:
            expected = tuple(tensors[name].shape)
            raise RuntimeError(f"size mismatch for {name}: {shape} in the file, {expected} by the recipe")
    _check_names(tensors, shapes)


def _check_names(tensors: Mapping[str, Tensor], names: Collection[str]) -> None:
    """Raise RuntimeError if the names in a file are not a model's; of names that share one tensor, one is enough."""
    there = {id(tensor) for name, tensor in tensors.items() if name in names}
    missing = [name for name, tensor in tensors.items() if id(tensor) not in there]
    unexpected = [name for name in names if name not in tensors]
    if missing or unexpected:
        raise RuntimeError(f"missing weights: {_shorten(missing)}; unexpected weights: {_shorten(unexpected)}")


def _shorten(names: Sequence[str]) -> str:
    return ", ".join([*names[:MAX_LISTED], *(["..."] if names[MAX_LISTED:] else [])]) or "none"


def load_weights(model: nn.Module, folder: Path) -> None:
    """Load the weights of a model folder; raise RuntimeError if they are not the model's, or not finite."""
    undefined = {name for name, tensor in model.named_buffers() if not _is_finite(tensor)}  # until it is trained
    weights = read_weights(folder)
    model.load_state_dict(weights, strict=False)
    tensors = model.state_dict(keep_vars=True)
    _check_names(tensors, weights)
    for name in weights:
        if name not in undefined and not _is_finite(tensors[name]):
            raise RuntimeError(f"{name} contains numbers that are not finite, or above {MAX_WEIGHT:g}")


def _is_finite(tensor: Tensor) -> bool:
    """Return whether all numbers are finite, and none is so large that only damage can have made it."""
    if not tensor.is_floating_point() or not tensor.numel():
        return True
    smallest, largest = torch.aminmax(tensor.detach())  # NaN if any number is
    return bool(smallest >= -MAX_WEIGHT) and bool(largest <= MAX_WEIGHT)


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

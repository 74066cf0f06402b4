"""A model is a folder: recipe, weights, tokenisers and what was reached. Opening one runs no code from it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import load_model as load_model_weights
from safetensors.torch import save_model as save_model_weights

from heedful.config import Recipe, load_recipe, recipe_toml
from heedful.errors import ConfigError, ModelError
from heedful.tasks.kind import FILES, WEIGHTS, Assets, Opened, hash_of_weights, kind_of
from heedful.training.checkpoint import under_way

FORMAT = 1
RECIPE, CARD = "recipe.toml", "model.json"
CURE = "copy the folder again, or train it again"


def save_model(
    folder: Path,
    recipe: Recipe,
    words: Assets,
    model: torch.nn.Module,
    figures: Mapping[str, float],
    reason: str = "",
) -> None:
    """Write a finished model. The card comes last: a folder without it is not a model yet."""
    draft = folder / "model.tmp"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    (draft / RECIPE).write_text(recipe_toml(recipe), encoding="utf-8")
    save_model_weights(model, str(draft / WEIGHTS))  # knows weights that several parts share
    shutil.copymode(draft / RECIPE, draft / WEIGHTS)  # safetensors lets nobody else read it
    words.save(draft)
    card = {
        "format": FORMAT,
        "task": recipe.task.kind,
        "parameters": sum(p.numel() for p in model.parameters()),
        "vocabulary": words.sizes(),
        "figures": dict(figures),
        "ended": reason,
        "sha256": hash_of_weights(draft),
    }
    (draft / CARD).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    for path in sorted(draft.iterdir(), key=lambda p: p.name == CARD):
        _synced(path)
        path.replace(folder / path.name)
    draft.rmdir()


def _synced(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def finished(folder: Path) -> bool:
    return (folder / CARD).is_file()


def read_card(folder: Path) -> dict[str, Any]:
    """What `model.json` says, refused if it is damaged or of a newer format."""
    if not folder.is_dir():
        what = f"{folder} is a file; a model is a folder" if folder.is_file() else ""
        raise ModelError(what or f"{folder}: there is no such model folder")
    path = folder / CARD
    if not path.is_file():
        so_far = "; its training is under way: heedful train goes on with it" if under_way(folder) else ""
        raise ModelError(f"{folder}: not a finished model (no {CARD} in it){so_far}")
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
        version = card["format"]
    except (ValueError, KeyError, TypeError):
        raise ModelError(f"{path}: damaged: not the card of a model; {CURE}") from None
    if version != FORMAT:
        cure = "it needs a newer heedful" if isinstance(version, int) and version > FORMAT else CURE
        raise ModelError(f"{path}: format {version!r}, but this heedful reads format {FORMAT}; {cure}")
    return dict(card)


def open_model(folder: Path) -> Opened[Any, Any]:
    """Load a model folder; every missing or damaged part has an error that names it."""
    card = read_card(folder)
    _must_have(folder, RECIPE)
    try:
        recipe = load_recipe(folder / RECIPE).recipe
    except ConfigError as error:
        raise ModelError(f"{folder}: its recipe cannot be used by this heedful:\n{error}") from None
    kind = kind_of(recipe.task.kind)
    _must_have(folder, WEIGHTS, *kind.files)
    try:
        words = kind.load(folder)
    except ModelError as error:
        raise ModelError(f"{error}; {CURE}") from None
    model = kind.build(recipe, words)
    try:
        load_model_weights(model, str(folder / WEIGHTS))
    except (safetensors.SafetensorError, RuntimeError) as error:
        lines = str(error).splitlines()  # torch's first line ends with a colon and says nothing
        first = next((line.strip() for line in lines if not line.endswith(":")), lines[0])
        raise ModelError(f"{folder / WEIGHTS}: damaged, or not this recipe's: {first}; {CURE}") from None
    if card.get("sha256") not in (None, hash_of_weights(folder)):
        raise ModelError(
            f"{folder / WEIGHTS}: damaged: not the bytes that were saved; {CURE}"
            f' (changed on purpose: take "sha256" out of {CARD})'
        )
    model.eval()
    return Opened(folder.name, recipe, words, model, card, folder)


def open_for(folder: Path, task: str) -> Opened[Any, Any]:
    """The same; a model of another task is refused, and told where it belongs."""
    opened = open_model(folder)
    refuse_others(opened.name, opened.recipe.task.kind, task)
    return opened


def refuse_others(name: str, own: str, task: str) -> None:
    """Of a model whose task is `own`: does it do what `task` does?"""
    if FILES[own] != FILES[task]:
        raise ModelError(f"{name} was trained to {own}; use heedful {own}")


def _must_have(folder: Path, *parts: str) -> None:
    for part in parts:
        if not (folder / part).is_file():
            raise ModelError(f"{folder}: incomplete: {part} is missing; {CURE}")

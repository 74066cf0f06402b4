"""`heedful train`: from a recipe to a model folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

from heedful.config import Loaded, differences, load_recipe, recipe_toml
from heedful.errors import TrainingError
from heedful.models import build
from heedful.tasks.folder import RECIPE, finished, save_model
from heedful.tasks.text import TextTask, learn, open_splits
from heedful.training import Report
from heedful.training.loop import train


class Listener(NamedTuple):
    """Whom the work talks to: a line of words, the number of steps to come, a step done, an epoch done."""

    say: Callable[[str], None]
    begin: Callable[[int], None]
    tick: Callable[[int, float], None]
    after: Callable[[Report], None]


def run(loaded: Loaded, out: Path, listener: Listener) -> bool:
    """Train as the recipe says; False if the folder already holds this very model, finished."""
    if _done_before(loaded, out):
        return False
    recipe = loaded.recipe
    splits = open_splits(recipe, loaded.base)
    words = learn(splits["train"], recipe)
    task = TextTask(recipe, splits, words)
    torch.manual_seed(recipe.training.seed)
    model = build(recipe.model, len(words.source), len(words.target))
    out.mkdir(parents=True, exist_ok=True)
    (out / RECIPE).write_text(recipe_toml(recipe), encoding="utf-8")
    (out / "metrics.jsonl").unlink(missing_ok=True)
    parameters = sum(p.numel() for p in model.parameters())
    listener.say(
        f"{len(splits['train']):,} pairs, {len(words.source):,} and {len(words.target):,} words,"
        f" {parameters:,} parameters"
    )
    listener.begin(task.steps_per_epoch() * recipe.training.epochs)
    reports = train(task, model, recipe.training, out, tick=listener.tick, after=listener.after)
    save_model(out, recipe, words, model, reports[-1].figures)
    return True


def _done_before(loaded: Loaded, out: Path) -> bool:
    """True if `out` holds this recipe's finished model; another recipe's is refused with the difference."""
    if out.exists() and not out.is_dir():
        raise TrainingError(f"{out} is a file; --out names a folder")
    if not finished(out):
        return False
    changed = differences(load_recipe(out / RECIPE).recipe, loaded.recipe)
    if not changed:
        return True
    listed = "\n".join(f"  - {line}" for line in changed)
    raise TrainingError(
        f"{out} holds a model of another recipe; give another --out, or remove it. What differs:\n{listed}"
    )

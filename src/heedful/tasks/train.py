"""`heedful train`: from a recipe to a model folder."""

from __future__ import annotations

from pathlib import Path

import torch

from heedful.config import Loaded, Recipe, differences, load_recipe, recipe_toml
from heedful.data.paths import PREFIX
from heedful.errors import TrainingError
from heedful.models import build
from heedful.tasks.folder import RECIPE, finished, save_model
from heedful.tasks.text import TextTask, Vocabularies, learn, open_splits
from heedful.training import leads
from heedful.training.checkpoint import forget, under_way
from heedful.training.loop import train
from heedful.training.types import Ears


def run(loaded: Loaded, out: Path, ears: Ears) -> bool:
    """Train as the recipe says, from where an earlier run stopped; False if there is nothing left to do."""
    if _done_before(loaded, out):
        return False
    recipe = anchored(loaded)
    splits = open_splits(recipe, loaded.base)
    if under_way(out) and (out / "source.tokenizer.json").is_file():
        words = Vocabularies.load(out)
    else:
        words = learn(splits["train"], recipe)
        out.mkdir(parents=True, exist_ok=True)
        if leads():
            (out / RECIPE).write_text(recipe_toml(recipe), encoding="utf-8")
            words.save(out)
    task = TextTask(recipe, splits, words)
    torch.manual_seed(recipe.training.seed)
    model = build(recipe.model, len(words.source), len(words.target))
    if leads():
        _introduce(task, model, ears)
    outcome = train(
        task, model, recipe.training, out, begin=ears.begin, tick=ears.tick, after=ears.after, say=ears.say
    )
    if leads():
        save_model(out, recipe, words, model, outcome.best.figures, outcome.reason)
        forget(out)
        ears.say(outcome.reason)
    return True


def anchored(loaded: Loaded) -> Recipe:
    """The recipe with data files that can be found from anywhere, as the model folder keeps it."""

    def found(name: str) -> str:
        return name if name.startswith(PREFIX) else str((loaded.base / name).absolute())

    data = loaded.recipe.data
    files = {split: tuple(map(found, getattr(data, split))) for split in ("train", "valid", "test")}
    return loaded.recipe.model_copy(update={"data": data.model_copy(update=files)})


def _introduce(task: TextTask, model: torch.nn.Module, ears: Ears) -> None:
    """What is about to be trained, in two lines."""
    parameters = sum(p.numel() for p in model.parameters())
    padding = task.buckets.padding_share(1)
    ears.say(
        f"{len(task.corpus):,} pairs, {len(task.words.source):,} and {len(task.words.target):,} words,"
        f" {parameters:,} parameters, {padding.both:.1%} padding"
    )
    report = str(task.corpus.tally)
    if report:
        ears.say(report)


def _done_before(loaded: Loaded, out: Path) -> bool:
    """True if `out` holds this recipe's finished model; another recipe's is refused with the difference."""
    if out.exists() and not out.is_dir():
        raise TrainingError(f"{out} is a file; --out names a folder")
    if not finished(out) and not under_way(out):
        return False
    changed = differences(load_recipe(out / RECIPE).recipe, anchored(loaded))
    if not changed:
        return finished(out)
    listed = "\n".join(f"  - {line}" for line in changed)
    raise TrainingError(
        f"{out} holds a model of another recipe; give another --out, or remove it. What differs:\n{listed}"
    )

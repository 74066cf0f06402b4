"""`heedful train`: from a recipe to a model folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from heedful.config import Loaded, Recipe, differences, load_recipe, recipe_toml
from heedful.data.paths import PREFIX
from heedful.errors import ModelError, TrainingError
from heedful.tasks.folder import RECIPE, finished, save_model
from heedful.tasks.kind import Assets, Kind, kind_of
from heedful.training import leads
from heedful.training.checkpoint import CURE, FOLDER, forget, under_way
from heedful.training.log import NAME
from heedful.training.loop import train
from heedful.training.types import Ears

OURS = (RECIPE, NAME, "metrics.tmp", "tensorboard", FOLDER)  # before there is a model
FREE = "training."  # a run under way may take other settings of this section; the state knows which


def run(loaded: Loaded, out: Path, ears: Ears) -> bool:
    """Train as the recipe says, from where an earlier run stopped; False if there is nothing left to do."""
    if _done_before(loaded, out):
        return False
    recipe = anchored(loaded)
    kind = kind_of(recipe.task.kind)
    with _as_found(out, kind):
        _train(kind, recipe, loaded.base, out, ears)
    return True


def _train(kind: Kind, recipe: Recipe, base: Path, out: Path, ears: Ears) -> None:
    going_on = under_way(out) and all((out / name).is_file() for name in kind.files)
    started = kind.start(recipe, base, _words(kind, out) if going_on else None, ears)
    torch.manual_seed(recipe.training.seed % 2**63)
    model = kind.build(recipe, started.words)
    begun = [] if going_on else started.prepare(model)
    if leads():
        if not going_on:
            (out / RECIPE).write_text(recipe_toml(recipe), encoding="utf-8")
            started.words.save(out)
        parameters = sum(p.numel() for p in model.parameters())
        ears.say(", ".join([*started.facts, f"{parameters:,} parameters"]))
        for line in [*started.notes, *begun]:
            ears.say(line)
    outcome = train(
        started.task,
        model,
        recipe.training,
        out,
        begin=ears.begin,
        tick=ears.tick,
        after=ears.after,
        say=ears.say,
    )
    if leads():
        save_model(out, recipe, started.words, model, outcome.best.figures, outcome.reason)
        forget(out)
        ears.say(outcome.reason)


@contextmanager
def _as_found(out: Path, kind: Kind) -> Iterator[None]:
    """Make the folder; what fails before there is a state to go on from leaves it as it was."""
    there = set(out.iterdir()) if out.exists() else set()
    new = not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TrainingError(f"{out}: cannot be made: {error.strerror}; give another --out") from None
    try:
        yield
    except BaseException:
        if leads() and not under_way(out):
            for path in {out / name for name in (*OURS, *kind.files)} - there:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            if new:
                with suppress(OSError):  # somebody put something into it
                    out.rmdir()
        raise


def _words(kind: Kind, out: Path) -> Assets:
    try:
        return kind.load(out)
    except ModelError as error:
        raise TrainingError(f"{error}; {CURE}") from None


def anchored(loaded: Loaded) -> Recipe:
    """The recipe with data files that can be found from anywhere, as the model folder keeps it."""

    def found(name: str) -> str:
        return name if not name or name.startswith(PREFIX) else str((loaded.base / name).absolute())

    data, training = loaded.recipe.data, loaded.recipe.training
    files: dict[str, object] = {
        split: tuple(map(found, getattr(data, split))) for split in ("train", "valid", "test")
    }
    files["vectors"] = found(data.vectors)
    start = {"start_from": found(training.start_from)}
    update = {"data": data.model_copy(update=files), "training": training.model_copy(update=start)}
    return loaded.recipe.model_copy(update=update)


def _done_before(loaded: Loaded, out: Path) -> bool:
    """True if `out` holds this recipe's finished model; another recipe's is refused with the difference."""
    if out.exists() and not out.is_dir():
        raise TrainingError(f"{out} is a file; --out names a folder")
    if not finished(out) and not under_way(out):
        return False
    changed = differences(load_recipe(out / RECIPE).recipe, anchored(loaded))
    if not finished(out):
        changed = [line for line in changed if not line.startswith(FREE)]
    if not changed:
        return finished(out)
    listed = "\n".join(f"  - {line}" for line in changed)
    raise TrainingError(
        f"{out} holds a model of another recipe; give another --out, or remove it. What differs:\n{listed}"
    )

"""`heedful train`: from a recipe to a model folder."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from heedful.config import Loaded, Recipe, differences, load_recipe, recipe_toml
from heedful.config.section import Section
from heedful.config.unread import unread
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
S = TypeVar("S", bound=Section)
NOTHING = "there is nothing to learn"
FREE = "training."  # a run under way may take other settings of this section; the state knows which


def run(loaded: Loaded, out: Path, ears: Ears) -> bool:
    """Train as the recipe says, from where an earlier run stopped; False if there is nothing left to do."""
    if _done_before(loaded, out):
        return False
    recipe = anchored(loaded)
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # `evaluate` tells of tokenised text, once
    kind = kind_of(recipe.task.kind)
    for line in unread(loaded):
        ears.say(line)
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
        ears.say(", ".join([*started.facts, f"{parameters_of(model):,} parameters"]))
        for line in [*started.notes, *begun]:
            ears.say(line)
    if parameters_of(model) == 0:  # such as counting: it is what it will be
        figures = started.task.validate(model.eval()).figures
        save_model(out, recipe, started.words, model, figures, NOTHING)
        ears.say(NOTHING)
        return
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
        ears.say(f"ended by training.{outcome.reason}")


def parameters_of(model: nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters())


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
    """The recipe with files and folders that can be found from anywhere, as the model folder keeps it."""

    def found(name: str) -> str:
        away = not name or name.startswith(PREFIX)
        return name if away else str((loaded.base / name).absolute())

    def folder(name: str) -> str:
        """A model's, which people name from where they stand as well."""
        here = Path(name).is_dir() and not (loaded.base / name).is_dir()
        return str(Path(name).absolute()) if name and here else found(name)

    recipe = loaded.recipe
    data, training = recipe.data, recipe.training
    files: dict[str, Any] = {
        split: tuple(map(found, getattr(data, split))) for split in ("train", "also", "valid", "test")
    }
    files["ratings"] = _changed(data.ratings, found, "titles")
    files["pictures"] = _changed(data.pictures, found, "folder", "captions", "weights")
    files["vectors"] = found(data.vectors)
    models: dict[str, Any] = {
        "start_from": folder(training.start_from),
        "teachers": tuple(map(folder, training.teachers)),
    }
    return recipe.model_copy(
        update={"data": data.model_copy(update=files), "training": training.model_copy(update=models)}
    )


def _changed(section: S | None, change: Callable[[str], str], *keys: str) -> S | None:
    if section is None:
        return None
    return section.model_copy(update={key: change(getattr(section, key)) for key in keys})


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

"""`heedful train`: from a recipe to a model folder."""

from __future__ import annotations

import errno
import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from heedful.config import LoadedRecipe, Recipe, differences, load_recipe, recipe_toml
from heedful.config.guided import ALIGN, GOLD
from heedful.config.unused import unused_settings
from heedful.data.asset_files import RESUME_DIR, asset_file, has_checkpoint
from heedful.data.paths import has_prefix
from heedful.errors import ModelError, TrainingError
from heedful.section import Section
from heedful.tasks.base import Assets, Task, all_files
from heedful.tasks.model_card import RECIPE, WEIGHTS, is_finished
from heedful.tasks.model_folder import DRAFTS, save_model
from heedful.tasks.registry import get_task
from heedful.tasks.run_lock import LOCK_FILE, lock_folder
from heedful.training import is_main_process
from heedful.training.checkpoint_store import START_OVER_HINT, remove_checkpoints
from heedful.training.loop import train
from heedful.training.metrics_log import METRICS_FILE
from heedful.training.types import Callbacks

RUN_FILES = (RECIPE, METRICS_FILE, "tensorboard", RESUME_DIR)  # written before there is a model
S = TypeVar("S", bound=Section)
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # of a write, whose error names no file
NO_PARAMETERS = "the model has no parameters to train"
RESUMABLE = "training."  # a run may be resumed with other settings of this section; the checkpoint checks which


def train_recipe(loaded_recipe: LoadedRecipe, out: Path, callbacks: Callbacks) -> bool:
    """Train a recipe's model into `out`, resuming an interrupted run; return False if it is already trained."""
    if _is_trained(loaded_recipe, out):
        remove_leftovers(out, callbacks.log)
        return False
    recipe = absolute_paths(loaded_recipe)
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # `evaluate` warns about tokenized text, once
    task = get_task(recipe.task.kind)
    for line in unused_settings(loaded_recipe):
        callbacks.log(line)
    with _removed_on_failure(out, task, recipe):
        _train(task, recipe, loaded_recipe.base, out, callbacks)
    return True


def _train(task: Task, recipe: Recipe, base: Path, out: Path, callbacks: Callbacks) -> None:
    resumed = has_checkpoint(out) and all(asset_file(out, name).is_file() for name in task.files)
    setup = task.setup_training(recipe, base, _load_assets(task, out) if resumed else None, callbacks)
    torch.manual_seed(recipe.training.seed % 2**63)
    model = task.build(recipe, setup.assets)
    initialization = [] if resumed else setup.initialize(model)
    if is_main_process():
        if not resumed:
            (out / RECIPE).write_text(recipe_toml(recipe), encoding="utf-8")
            setup.assets.save(out)
        callbacks.log(", ".join([*setup.summary, f"{count_parameters(model):,} parameters"]))
        for line in [*setup.notes, *initialization]:
            callbacks.log(line)
    if count_parameters(model) == 0:  # such as a popularity count
        metrics = setup.task.validate(model.eval()).metrics
        save_model(out, recipe, setup.assets, model, metrics, NO_PARAMETERS)
        callbacks.log(NO_PARAMETERS)
        return
    callbacks.on_built(recipe, setup.assets, model)
    outcome = train(setup.task, model, recipe.training, out, callbacks)
    if is_main_process():
        save_model(out, recipe, setup.assets, model, outcome.best.metrics, outcome.reason)
        remove_checkpoints(out)
        callbacks.log(f"stopped by training.{outcome.reason}")


def count_parameters(model: nn.Module) -> int:
    """Return the number of trainable and frozen parameters."""
    return sum(weight.numel() for weight in model.parameters())


@contextmanager
def _removed_on_failure(out: Path, task: Task, recipe: Recipe) -> Iterator[None]:
    """Create and lock the folder; an error before the first checkpoint removes what the run wrote.

    Ranks other than 0 neither lock nor remove.
    """
    created = not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TrainingError(f"{out}: cannot be created: {error.strerror}; give another --out") from None
    if not is_main_process():
        yield
        return
    with lock_folder(out) as killed:
        existing = set(out.iterdir())
        _check_overwrites(out, task, recipe, killed)
        try:
            yield
        except BaseException as error:
            if not has_checkpoint(out):
                for path in {out / name for name in (*RUN_FILES, *all_files(task))} - existing:
                    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
                if created:
                    (out / LOCK_FILE).unlink(missing_ok=True)
                    with suppress(OSError):  # another program wrote into it
                        out.rmdir()
            if isinstance(error, OSError) and error.errno in DISK_FULL and error.filename is None:
                raise TrainingError(f"{out}: cannot be written: {error.strerror}") from None
            raise


def _check_overwrites(out: Path, task: Task, recipe: Recipe, killed: bool) -> None:
    """Refuse to overwrite files that no run wrote, such as the user's own recipe with `--out .`.

    The files of an interrupted run have a checkpoint, the lock of a killed process, or this recipe beside them.
    """
    if killed or has_checkpoint(out):
        return
    stored = out / RECIPE
    if not stored.exists():
        existing = [out / name for name in (METRICS_FILE, WEIGHTS, *all_files(task)) if (out / name).exists()]
    else:
        same = stored.read_text(encoding="utf-8", errors="replace") == recipe_toml(recipe)
        existing = [] if same else [stored]
    if existing:
        raise TrainingError(f"{existing[0]}: would be overwritten; give another --out")


def remove_leftovers(out: Path, log: Callable[[str], None]) -> None:
    """Remove what a run that was killed after writing its model left in the folder, unless it is still running."""
    if not any(_leftovers(out)):
        return
    with lock_folder(out):
        leftovers = sorted(_leftovers(out))
        for path in leftovers:
            shutil.rmtree(path)
    log(f"{out}: removed what an interrupted run left: {', '.join(path.name for path in leftovers)}")


def _leftovers(out: Path) -> Iterator[Path]:
    yield from (path for path in (out / RESUME_DIR, *out.glob(DRAFTS)) if path.is_dir() and not path.is_symlink())


def _load_assets(task: Task, out: Path) -> Assets:
    try:
        return task.load_assets(out)
    except ModelError as error:
        raise TrainingError(f"{error}; {START_OVER_HINT}") from None


def absolute_paths(loaded_recipe: LoadedRecipe) -> Recipe:
    """Return the recipe with absolute paths, as the model folder stores it."""

    def absolute(name: str) -> str:
        stays = not name or has_prefix(name)
        return name if stays else str((loaded_recipe.base / name).absolute())

    def absolute_model(name: str) -> str:
        """Model folders may also be relative to the working directory."""
        in_working_directory = Path(name).is_dir() and not (loaded_recipe.base / name).is_dir()
        return str(Path(name).absolute()) if name and in_working_directory else absolute(name)

    recipe = loaded_recipe.recipe
    data, training = recipe.data, recipe.training
    data_paths: dict[str, Any] = {
        split: tuple(map(absolute, getattr(data, split))) for split in ("train", "extra_train", "valid", "test")
    }
    data_paths["ratings"] = _replace_paths(data.ratings, absolute, "titles")
    data_paths["images"] = _replace_paths(data.images, absolute, "folder", "captions", "weights")
    data_paths["vectors"] = absolute(data.vectors)
    guided = training.guided
    if guided is not None and guided.links not in ("", GOLD, ALIGN):
        guided = guided.model_copy(update={"links": absolute(guided.links)})
    model_paths: dict[str, Any] = {
        "guided": guided,
        "init_from": absolute_model(training.init_from),
        "teachers": tuple(map(absolute_model, training.teachers)),
    }
    return recipe.model_copy(
        update={"data": data.model_copy(update=data_paths), "training": training.model_copy(update=model_paths)}
    )


def _replace_paths(section: S | None, absolute: Callable[[str], str], *keys: str) -> S | None:
    if section is None:
        return None
    return section.model_copy(update={key: absolute(getattr(section, key)) for key in keys})


def _is_trained(loaded_recipe: LoadedRecipe, out: Path) -> bool:
    """Return whether `out` holds this recipe's finished model; raise TrainingError if it holds another recipe's."""
    if out.exists() and not out.is_dir():
        raise TrainingError(f"{out} is a file; --out takes a folder")
    if not is_finished(out) and not has_checkpoint(out):
        return False
    changed = differences(load_recipe(out / RECIPE).recipe, absolute_paths(loaded_recipe))
    if not is_finished(out):
        changed = [line for line in changed if not line.startswith(RESUMABLE)]
    if not changed:
        return is_finished(out)
    listed = "\n".join(f"  - {line}" for line in changed)
    raise TrainingError(
        f"{out} holds a model of another recipe; give another --out, or remove it. Differences:\n{listed}"
    )

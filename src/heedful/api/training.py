"""Train a model from Python: from data, or from a recipe."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from heedful.api.loading import load
from heedful.arguments import python_errors
from heedful.config import LoadedRecipe, Recipe, load_recipe
from heedful.config.load import recipe_from_settings
from heedful.config.python_settings import keyword_settings, to_overrides
from heedful.data.frames import split_datasets
from heedful.errors import ArgumentError, nearest
from heedful.tasks.api import Model
from heedful.tasks.auto import make_recipe
from heedful.tasks.data_files import split_files
from heedful.tasks.global_state import preserved_state
from heedful.tasks.train import train_recipe
from heedful.training.types import Callbacks, Report

Progress = Callbacks | Mapping[str, Callable[..., Any]] | Callable[[str], object] | None


def train(
    data: Any,
    task: str | None = None,
    *,
    preset: str | None = None,
    valid: Any = None,
    test: Any = None,
    out: str | Path | None = None,
    callbacks: Progress = None,
    settings: Mapping[str, Any] | None = None,
    **keywords: Any,
) -> Model:
    """Train a model and return it.

    `data` is one of

    - pairs, as a list of tuples or dicts, two lists `(texts, labels)`, a generator, a pandas, polars or pyarrow
      table, or a dataset;
    - the name of a file: CSV, TSV, JSONL, JSON or Parquet, or a tuple of two parallel text files;
    - a `heedful.Recipe`, or the name of a recipe file (.toml), which says everything.

    `task` is "translate" (the default), "summarize", "reply", "transduce", "classify", "recommend", "caption" or
    "read". All settings follow from the task and the size of the data; give any of them to choose it yourself:
    settings of training as keywords (`epochs=3, seed=1, learning_rate=0.001, max_minutes=5`), all others in
    `settings` by dotted name or nested (`{"model.encoder.hidden": 64}`), or with two underscores
    (`model__encoder__hidden=64`). `heedful check` and `print(heedful.Recipe(...))` list them.

    `valid` and `test` are more data of the same kind; without `valid`, a part of the training data is held out.
    `out` is the folder of the model, in which an interrupted training resumes; without it, the model lives in a
    temporary folder until `model.save(folder)`. `callbacks` report progress: a function that gets lines of text,
    such as `print`, or a dict of `on_start`, `on_step`, `on_validation` and `log`.

    >>> import heedful
    >>> pairs = [(f"{a} {b}", f"{b} {a}") for a in "abcdefghij" for b in "abcdefghij"]
    >>> model = heedful.train(pairs, max_steps=3, seed=1)
    >>> model
    <heedful model model: translate>
    >>> model.recipe.model.preset
    'cgru'

    The model folder stores the recipe, not the data. Lists and tables are written to the cache folder
    (`HEEDFUL_CACHE`), where `model.evaluate(split="valid")` finds them again.
    """
    chosen = {**(settings or {}), **keyword_settings(keywords)}
    if preset is not None:
        chosen["model.preset"] = preset
    with python_errors(), preserved_state():
        loaded, note = _make_recipe(data, task, {"valid": valid, "test": test}, to_overrides(chosen))
        progress = _make_callbacks(callbacks)
        if note:
            progress.log(note)
        if out is not None:
            train_recipe(loaded, Path(out), progress)
            return load(out)
        return _train_temporarily(loaded, progress)


def _train_temporarily(loaded: LoadedRecipe, progress: Callbacks) -> Model:
    """Train in a temporary folder, which is removed with the model or at the end of the program."""
    temporary = Path(tempfile.mkdtemp(prefix="heedful-"))
    try:
        train_recipe(loaded, temporary / "model", progress)
        model = load(temporary / "model")
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    weakref.finalize(model, shutil.rmtree, temporary, ignore_errors=True)
    return model


def _make_recipe(
    data: Any, task: str | None, splits: Mapping[str, Any], overrides: list[str]
) -> tuple[LoadedRecipe, str]:
    """Return the recipe of a training, and a line that describes one that was made for the data."""
    is_file = isinstance(data, str | Path) and str(data).lower().endswith(".toml")
    if is_file or isinstance(data, Recipe):
        names = [name for name, value in {"task": task, **splits}.items() if value is not None]
        if names:
            raise ArgumentError(f"{', '.join(names)}: a recipe names its task and data; use settings to change them")
        if is_file:
            return load_recipe(data, overrides), ""
        return recipe_from_settings(data.model_dump(exclude_unset=True), overrides, data._base), ""
    kind = task or "translate"
    files = split_files({**split_datasets(data), **{k: v for k, v in splits.items() if v is not None}}, kind)
    held_out = to_overrides({"data": {name: files[name] for name in ("valid", "test") if name in files}})
    return make_recipe(kind, files["train"], [*held_out, *overrides])


def _make_callbacks(callbacks: Progress) -> Callbacks:
    if callbacks is None:
        return Callbacks()
    if isinstance(callbacks, Callbacks):
        return callbacks
    if isinstance(callbacks, Mapping):
        unknown = [name for name in callbacks if name not in Callbacks._fields]
        if unknown:
            raise ArgumentError(f"callbacks: there is no {unknown[0]}; {nearest(unknown[0], Callbacks._fields)}")
        return Callbacks(**callbacks)
    if not callable(callbacks):
        raise ArgumentError(f"callbacks: expected a function or a dict of functions, got {type(callbacks).__name__}")
    return _line_callbacks(callbacks)


def _line_callbacks(tell: Callable[[str], object]) -> Callbacks:
    """Return callbacks that report everything as lines of text."""

    def log(line: str) -> None:
        tell(line)

    def on_validation(report: Report) -> None:
        tell(_describe(report))

    return Callbacks(log=log, on_validation=on_validation)


def _describe(report: Report) -> str:
    metrics = ", ".join(f"{name} {value:.3g}" for name, value in report.metrics.items())
    best = ", best so far" if report.improved else ""
    return f"epoch {report.epoch}, step {report.step}: training loss {report.train_loss:.3g}, {metrics}{best}"

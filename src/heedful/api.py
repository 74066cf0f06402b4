"""The public Python interface: load a model by its name or folder.

en_fr = heedful.load("build/demo")
en_fr("my sister sees the small cat")                          # a line, or a list of lines
trace = en_fr.trace("my sister sees the small cat")            # every number of the computation
en_fr.trace("my sister sees the small cat", edits=["onehot:step=5,position=0"])

Inputs and outputs depend on the task: lines become lines, texts labels, images captions, histories items, and a
language model returns the surprisal of each word.
"""

from __future__ import annotations

from pathlib import Path

from heedful.errors import ModelError
from heedful.tasks.api import Model
from heedful.tasks.bundled import find_models
from heedful.tasks.model_folder import load_model
from heedful.tasks.registry import get_task

__all__ = ["Model", "load"]


def load(name: str | Path | None = None, *, task: str | None = None) -> Model:
    """Load a model folder or a bundled model by its name; without a name, the bundled model for the task.

    With `task`, a model of another task raises a ModelError.
    """
    (folder,) = find_models([] if name is None else [name], task or "translate")
    loaded = load_model(folder)
    kind = loaded.recipe.task.kind
    if task is not None and get_task(kind) is not get_task(task):
        raise ModelError(f"{loaded.name} was trained to {kind}, not to {task}")
    model: Model = get_task(kind).api_class(loaded)
    return model

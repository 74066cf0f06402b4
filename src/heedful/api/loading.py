"""Load a trained model."""

from __future__ import annotations

from pathlib import Path

from heedful.arguments import python_errors
from heedful.errors import ModelError
from heedful.tasks.api import Model
from heedful.tasks.bundled import find_models
from heedful.tasks.global_state import preserved_state
from heedful.tasks.model_folder import load_model
from heedful.tasks.open_model import is_from_elsewhere, load_from_elsewhere
from heedful.tasks.registry import get_task, task_of


def load(name: str | Path | None = None, *, task: str | None = None) -> Model:
    """Load a trained model: a folder that `heedful.train` or `heedful train` wrote, or a bundled model by its name.

    Without a name, load the bundled model for `task` (default: "translate"). With both, a model that was trained for
    another task raises a ModelError.

    >>> import heedful
    >>> model = heedful.load("en-fr")
    >>> model
    <heedful model en-fr: translate>
    >>> model(["The cat sleeps.", "I am happy."])
    ['Le chat dort.', 'Je suis heureux.']
    >>> model("I am happy.", n_best=2)  # several outputs per input, best first
    ['Je suis heureux.', 'Je suis heureuse.']

    `hf:FOLDER_OR_ID` loads a model of Hugging Face transformers from a folder, or from the hub (`from_transformers`),
    `hub:owner/name` one of ours that `push_to_hub` has uploaded. Nothing else is ever fetched.

    A model has `trace` (every step of a run), `evaluate` and `measure` (on data), and `save`. `heedful.Model`
    describes them, and `heedful models` on the command line lists the bundled models with their licenses.
    """
    with python_errors():
        if is_from_elsewhere(name):
            return _open_elsewhere(str(name))
        (folder,) = find_models([] if name is None else [name], task or "translate")
        with preserved_state():
            loaded = load_model(folder)
        kind = loaded.recipe.task.kind
        if task is not None and get_task(kind) is not get_task(task):
            raise ModelError(f"{loaded.name} was trained to {kind}, not to {task}")
        model: Model = get_task(kind).api_class(loaded)
        return model


def _open_elsewhere(name: str) -> Model:
    """Return a model of another library or from the hub: `hf:FOLDER_OR_ID`, `hub:owner/name`."""
    loaded = load_from_elsewhere(name)
    model: Model = task_of(loaded).api_class(loaded)
    return model

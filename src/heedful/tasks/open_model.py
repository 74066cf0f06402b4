"""Open the model that `-m` names: a folder, a bundled model, or one from elsewhere by its prefix."""

from __future__ import annotations

from typing import Any

from heedful import registry
from heedful.errors import ModelError
from heedful.tasks.bundled import find_models
from heedful.tasks.model_folder import load_model
from heedful.tasks.model_names import SOURCES, is_from_elsewhere

__all__ = ["is_from_elsewhere", "load_from_elsewhere", "open_model"]


def open_model(name: str | None, task: str) -> Any:
    """Return the loaded model that `-m` names; without a name, the bundled model for the task."""
    if name is not None and is_from_elsewhere(name):
        return load_from_elsewhere(name)
    (folder,) = find_models([], task) if name is None else find_models([name], task)
    return load_model(folder)


def load_from_elsewhere(name: str) -> Any:
    """Return the model of another library that a name with a prefix stands for."""
    entry, extra = SOURCES[name.partition(":")[0] + ":"]
    try:
        load = registry.resolve(entry)
    except ImportError as error:
        if (error.name or "").startswith("heedful"):
            raise
        raise ModelError(f"{name}: needs {error.name}: pip install 'heedful[{extra}]'") from None
    return load(name)

"""Open the model that `-m` names: a folder, a bundled model, or one from elsewhere by its prefix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heedful import registry
from heedful.errors import ModelError
from heedful.tasks.bundled import find_models
from heedful.tasks.model_folder import load_model

SOURCES: Mapping[str, tuple[str, str]] = {  # prefix -> the function that loads, and its extra; imported when it is used
    "hf:": ("heedful.integrations.transformers.loading:load_transformers", "transformers"),
    "hub:": ("heedful.integrations.hub:load_from_hub", "hub"),
}


def is_from_elsewhere(name: object) -> bool:
    """Return whether a name has the prefix of models that are no model folders of ours, such as `hf:`."""
    return str(name).startswith(tuple(SOURCES))


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

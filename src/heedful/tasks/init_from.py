"""Initialize a model with the weights of another (`training.init_from`), for tasks that copy all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heedful.config import Recipe, differences
from heedful.data.paths import locate_folder
from heedful.errors import ModelError
from heedful.tasks.base import LoadedModel
from heedful.tasks.model_folder import load_model_for

Initialize = Callable[[nn.Module], Sequence[str]]


def load_initial_model(recipe: Recipe, base: Path) -> LoadedModel[Any, Any] | None:
    """Return the model that `training.init_from` names, if any."""
    if not recipe.training.init_from:
        return None
    return load_model_for(locate_folder(recipe.training.init_from, base), recipe.task.kind)


def reuse_assets(other: LoadedModel[Any, Any], recipe: Recipe) -> Any:
    """Return the other model's assets; raise ModelError if its [tokenizer] settings differ."""
    changed = [line for line in differences(other.recipe, recipe) if line.startswith("tokenizer.")]
    changed = [line for line in changed if not line.startswith("tokenizer.bpe_dropout")]
    if changed:
        raise ModelError(f"training.init_from: {other.name} has a different tokenizer:{_bullets(changed)}")
    return other.assets


def copy_weights(other: LoadedModel[Any, Any], recipe: Recipe, optional: tuple[str, ...] = ()) -> Initialize:
    """Return a function that copies the other model's weights into a new one of the same shape.

    Parts whose names begin with one of `optional` may be missing from the other model, and so may buffers such as
    the baseline of hard attention: they keep their initial values.
    """

    @torch.no_grad()
    def initialize(model: nn.Module) -> Sequence[str]:
        weights, parameters = other.model.state_dict(), dict(model.named_parameters())
        for name, tensor in model.state_dict().items():
            if name not in weights and (name.startswith(optional) or name not in parameters):
                continue
            if name not in weights or weights[name].shape != tensor.shape:
                changed = [line for line in differences(other.recipe, recipe) if line.startswith("model.")]
                message = f"training.init_from: {other.name} has a different shape: {name} does not match"
                raise ModelError(message + _bullets(changed))
            tensor.copy_(weights[name])
        return [f"initialized from {other.name}"]

    return initialize


def _bullets(lines: Sequence[str]) -> str:
    return "".join(f"\n  - {line}" for line in lines)

"""Beginning with another model's weights (`training.start_from`), for tasks that take over all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heedful.config import Recipe, differences
from heedful.data.paths import locate_folder
from heedful.errors import ModelError
from heedful.tasks.kind import Opened


def first_model(recipe: Recipe, base: Path) -> Opened[Any, Any] | None:
    """The model that a new one begins with, if there is one."""
    from heedful.tasks.folder import open_for

    if not recipe.training.start_from:
        return None
    return open_for(locate_folder(recipe.training.start_from, base), recipe.task.kind)


def words_of(other: Opened[Any, Any], recipe: Recipe) -> Any:
    """Its vocabularies, which the recipe's [tokenizer] must be able to mean."""
    changed = [line for line in differences(other.recipe, recipe) if line.startswith("tokenizer.")]
    changed = [line for line in changed if not line.startswith("tokenizer.dropout")]
    if changed:
        listed = "".join(f"\n  - {line}" for line in changed)
        raise ModelError(f"training.start_from: {other.name} has words of another kind:{listed}")
    return other.words


def begun_with(
    other: Opened[Any, Any], recipe: Recipe, anew: tuple[str, ...] = ()
) -> Callable[[nn.Module], Sequence[str]]:
    """Puts another model's weights into a new one of the same shape.

    Parts whose names begin with one of `anew` may be missing from the other, and so may what is only
    counted on the way, as the baseline of draws: they stay as they were made.
    """

    @torch.no_grad()
    def prepare(model: nn.Module) -> Sequence[str]:
        theirs, learnt = other.model.state_dict(), dict(model.named_parameters())
        for name, mine in model.state_dict().items():
            if name not in theirs and (name.startswith(anew) or name not in learnt):
                continue
            if name not in theirs or theirs[name].shape != mine.shape:
                changed = [line for line in differences(other.recipe, recipe) if line.startswith("model.")]
                listed = "".join(f"\n  - {line}" for line in changed)
                raise ModelError(
                    f"training.start_from: {other.name} is of another shape: {name} does not fit{listed}"
                )
            mine.copy_(theirs[name])
        return [f"begun with {other.name}"]

    return prepare

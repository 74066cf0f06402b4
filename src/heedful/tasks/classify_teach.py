"""What trained classifiers hold the training texts to be, for another to learn (Hinton 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.config import Recipe
from heedful.data.labels import Labels
from heedful.data.paths import locate_folder
from heedful.errors import HeedfulError, ModelError

if TYPE_CHECKING:
    from heedful.tasks.classify import Labeller

SETTING = "training.teachers"
SHOWN = 6  # labels that an error names


def teachers_of(recipe: Recipe, base: Path, labels: Labels) -> list[Labeller]:
    """The models that `training.teachers` names; opened now, so that their faults are told first."""
    from heedful.tasks.folder import open_for

    found: list[Labeller] = []
    for name in recipe.training.teachers:
        folder = locate_folder(name, base)
        try:
            teacher: Labeller = open_for(folder, "classify")
        except HeedfulError as error:
            raise ModelError(f"{SETTING}: {error}") from None
        theirs = teacher.words.labels.names
        if theirs != labels.names:
            parts = (
                ("only there", set(theirs) - set(labels.names)),
                ("only here", set(labels.names) - set(theirs)),
            )
            told = "; ".join(f"{where}: {_some(names)}" for where, names in parts if names)
            raise ModelError(f"{SETTING}: {folder} knows other labels ({told})")
        found.append(teacher)
    return found


def _some(names: set[str]) -> str:
    shown = ", ".join(sorted(names)[:SHOWN])
    return shown + (f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else "")


def lessons(
    teachers: Sequence[Labeller], texts: Sequence[str], threads: int = 1
) -> Float[Tensor, "text label"]:
    """Of every text the mean of the teachers' probabilities; of a longer one they read what they can."""
    from heedful.tasks.classify import probabilities
    from heedful.tasks.use import limits_of

    said = []
    for teacher in teachers:
        words, most = teacher.words.source, limits_of([teacher.recipe]).max_source
        ids = words.encode_all(texts)
        for at in (at for at, row in enumerate(ids) if len(row) - 1 > most):
            ids[at] = words.encode(words.cut(texts[at], most))
        said.append(probabilities(teacher.model, ids, threads))
    return torch.stack(said).mean(dim=0)

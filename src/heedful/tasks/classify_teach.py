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
from heedful.errors import ModelError

if TYPE_CHECKING:
    from heedful.tasks.classify import Labeller


def teachers_of(recipe: Recipe, base: Path, labels: Labels) -> list[Labeller]:
    """The models that `training.teachers` names; opened now, so that their faults are told first."""
    from heedful.tasks.folder import open_for

    found: list[Labeller] = []
    for name in recipe.training.teachers:
        folder = locate_folder(name, base)
        teacher: Labeller = open_for(folder, "classify")
        if teacher.words.labels.names != labels.names:
            theirs, ours = (", ".join(names[:6]) for names in (teacher.words.labels.names, labels.names))
            raise ModelError(f"training.teachers: {folder} knows other labels ({theirs}; here {ours})")
        found.append(teacher)
    return found


def lessons(teachers: Sequence[Labeller], texts: Sequence[str]) -> Float[Tensor, "text label"]:
    """Of every text the mean of the teachers' probabilities; they cut texts as they learnt to."""
    from heedful.tasks.classify import probabilities

    threads = torch.get_num_threads()
    said = [
        probabilities(teacher.model, teacher.words.source.encode_all(texts), threads) for teacher in teachers
    ]
    return torch.stack(said).mean(dim=0)

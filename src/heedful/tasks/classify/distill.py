"""Knowledge distillation: probabilities of trained classifiers as training targets (Hinton 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.config import Recipe
from heedful.data.labels import Labels
from heedful.data.paths import locate_folder
from heedful.errors import HeedfulError, ModelError
from heedful.tasks.classify.assets import LoadedClassifier
from heedful.tasks.classify.score import label_probabilities
from heedful.tasks.limits import inference_limits
from heedful.tasks.model_folder import load_model_for

SETTING = "training.teachers"
N_NAMED = 6  # labels that an error names


def load_teachers(recipe: Recipe, base: Path, labels: Labels) -> list[LoadedClassifier]:
    """Return the models that `training.teachers` names; raise ModelError if their labels differ."""
    teachers: list[LoadedClassifier] = []
    for name in recipe.training.teachers:
        folder = locate_folder(name, base)
        try:
            teacher: LoadedClassifier = load_model_for(folder, "classify")
        except HeedfulError as error:
            raise ModelError(f"{SETTING}: {error}") from None
        teacher_labels = teacher.assets.labels.names
        if teacher_labels != labels.names:
            only = (
                ("only in the teacher", set(teacher_labels) - set(labels.names)),
                ("only in the training data", set(labels.names) - set(teacher_labels)),
            )
            listed = "; ".join(f"{where}: {_list_names(names)}" for where, names in only if names)
            raise ModelError(f"{SETTING}: {folder} has different labels ({listed})")
        teachers.append(teacher)
    return teachers


def _list_names(names: set[str]) -> str:
    listed = ", ".join(sorted(names)[:N_NAMED])
    return listed + (f" and {len(names) - N_NAMED:,} more" if len(names) > N_NAMED else "")


def teacher_probs(
    teachers: Sequence[LoadedClassifier], texts: Sequence[str], threads: int = 1
) -> Float[Tensor, "text label"]:
    """Return the mean probabilities of the teachers; texts too long for a teacher are truncated."""
    by_teacher = []
    for teacher in teachers:
        tokenizer, limit = teacher.assets.source, inference_limits([teacher.recipe]).max_source
        ids = tokenizer.encode_all(texts)
        for index in (index for index, row in enumerate(ids) if len(row) - 1 > limit):
            ids[index] = tokenizer.encode(tokenizer.truncate(texts[index], limit))
        by_teacher.append(label_probabilities(teacher.model, ids, threads))
    return torch.stack(by_teacher).mean(dim=0)

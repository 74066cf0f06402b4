"""Finds settings that are valid but have no effect for the task of the recipe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from heedful import registry

if TYPE_CHECKING:
    from heedful.config.load import LoadedRecipe

TEXT_TASKS = ("translate", "summarize", "reply", "transduce")
GENERATION_TASKS = (*TEXT_TASKS, "caption")
USED_BY: Mapping[str, tuple[str, ...]] = {  # section or setting -> tasks that use it; all others are used by every task
    "data.extra_train": (*TEXT_TASKS, "classify"),
    "decoding": GENERATION_TASKS,
    "model.encoder.dropout": (*GENERATION_TASKS, "classify"),
    "model.initialization": GENERATION_TASKS,
    "tokenizer": (*GENERATION_TASKS, "classify", "read"),
    "tokenizer.decompose": (*TEXT_TASKS, "classify", "read"),
    "tokenizer.bpe_dropout": (*TEXT_TASKS, "classify"),
    "training.class_weights": ("classify",),
    "training.entropy_weight": GENERATION_TASKS,
    "training.doubly_stochastic": GENERATION_TASKS,
    "training.soft_fraction": GENERATION_TASKS,
    "training.freeze_embeddings": ("classify",),
    "training.negatives": ("recommend",),
    "training.reinforce_weight": GENERATION_TASKS,
    "training.scheduled_sampling": GENERATION_TASKS,
    "training.label_smoothing": (*GENERATION_TASKS, "classify", "read"),
    "training.reward_samples": ("caption",),
    "training.distill_weight": ("classify",),
    "training.train_unk": GENERATION_TASKS,
}


def unused_settings(loaded_recipe: LoadedRecipe) -> list[str]:
    """Return a note for each setting of the recipe or the command line that has no effect for the task."""
    task = loaded_recipe.recipe.task.kind
    if task not in registry.built_in_names("task"):  # a plugin's task may use any setting
        return []
    notes = []
    for keys, origin in loaded_recipe.origins.items():
        paths = (".".join(keys[:end]) for end in range(1, len(keys) + 1))  # the sections, then the setting
        if origin != "preset" and any(task not in USED_BY.get(path, (task,)) for path in paths):
            notes.append(f"`{'.'.join(keys)}` has no effect for this task.")
    return notes

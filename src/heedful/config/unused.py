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
    "data.in_memory": (*TEXT_TASKS, "classify"),
    "data.max_source": (*TEXT_TASKS, "classify", "read"),
    "data.max_target": GENERATION_TASKS,
    "data.on_too_long": (*TEXT_TASKS, "classify", "read"),
    "data.split_by": TEXT_TASKS,
    "data.split_seed": (*TEXT_TASKS, "classify", "read"),
    "data.split_test": (*GENERATION_TASKS, "classify", "read"),
    "data.split_valid": (*GENERATION_TASKS, "classify", "read"),
    "data.vectors": ("classify",),
    "decoding": GENERATION_TASKS,
    "model.attention": (*GENERATION_TASKS, "classify", "recommend"),
    "model.copying": TEXT_TASKS,
    "model.decoder": GENERATION_TASKS,
    "model.encoder": (*GENERATION_TASKS, "classify", "recommend"),
    "model.encoder.dropout": (*GENERATION_TASKS, "classify"),
    "model.initialization": GENERATION_TASKS,
    "model.tie_embeddings": (*GENERATION_TASKS, "read"),
    "tokenizer": (*GENERATION_TASKS, "classify", "read"),
    "tokenizer.shared": TEXT_TASKS,
    "tokenizer.target_kind": TEXT_TASKS,
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
    "training.guided": (*TEXT_TASKS, "classify"),
    "training.label_smoothing": (*GENERATION_TASKS, "classify", "read"),
    "training.rdrop": (*GENERATION_TASKS, "classify"),
    "training.reward": ("caption",),
    "training.reward_samples": ("caption",),
    "training.teachers": ("classify",),
    "training.distill_weight": ("classify",),
    "training.train_unk": GENERATION_TASKS,
}


def is_used(keys: tuple[str, ...], task: str) -> bool:
    """Return whether a task reads a setting; a plugin's task may read any."""
    if task not in registry.built_in_names("task"):
        return True
    paths = (".".join(keys[:end]) for end in range(1, len(keys) + 1))  # the sections, then the setting
    return all(task in USED_BY.get(path, (task,)) for path in paths)


def unused_settings(loaded_recipe: LoadedRecipe) -> list[str]:
    """Return a note for each setting of the recipe or the command line that has no effect for the task."""
    task = loaded_recipe.recipe.task.kind
    notes = []
    for keys, origin in loaded_recipe.origins.items():
        if origin != "preset" and not is_used(keys, task):
            notes.append(f"`{'.'.join(keys)}` has no effect for this task.")
    return notes

"""Settings that were set, are right by themselves, and that nobody will ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heedful.config.load import Loaded

LINES = ("translate", "summarise", "reply", "transduce")
WRITERS = (*LINES, "caption")
USED_BY: Mapping[str, tuple[str, ...]] = {  # by these tasks; what is not here all tasks read
    "data.also": (*LINES, "classify"),
    "decoding": WRITERS,
    "model.encoder.dropout": (*WRITERS, "classify"),
    "model.initialise": WRITERS,
    "tokenizer": (*WRITERS, "classify", "read"),
    "tokenizer.decompose": (*LINES, "classify", "read"),
    "tokenizer.dropout": (*LINES, "classify"),
    "training.class_weights": ("classify",),
    "training.entropy": WRITERS,
    "training.even": WRITERS,
    "training.expected": WRITERS,
    "training.hold_vectors": ("classify",),
    "training.negatives": ("recommend",),
    "training.reinforce": WRITERS,
    "training.sampling": WRITERS,
    "training.smoothing": (*WRITERS, "classify", "read"),
    "training.draws": ("caption",),
    "training.teaching": ("classify",),
    "training.unknown": WRITERS,
}


def unread(loaded: Loaded) -> list[str]:
    """A sentence for each setting of the recipe or the command line that its task does not read."""
    task = loaded.recipe.task.kind
    found = []
    for keys, origin in loaded.origins.items():
        parts = (".".join(keys[:end]) for end in range(1, len(keys) + 1))
        if origin != "preset" and any(task not in USED_BY.get(part, (task,)) for part in parts):
            found.append(f'{".".join(keys)} is set, and not read where task.kind = "{task}"')
    return found

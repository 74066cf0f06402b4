"""What a classifier may begin with: word vectors from a file, or the reader of another model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from heedful.config import Recipe, differences
from heedful.data.paths import locate, locate_folder
from heedful.data.tokenizer import SPECIALS, Tokenizer
from heedful.data.vectors import read_vectors
from heedful.errors import DataError, ModelError
from heedful.models import Classifier

if TYPE_CHECKING:
    from heedful.tasks.classify import Labeller

VECTORS = "embedding.weight"
ANSWERS = "output."  # what belongs to the labels
READER = ("model.embedding", "model.encoder.", "model.attention.", "model.classifier.")
Begin = Callable[[Classifier], Sequence[str]]


def beginning(recipe: Recipe, base: Path, words: Tokenizer) -> Begin:
    """What is to be done to a new model. Files are read now, so that their faults are told first."""
    first = _from_model(recipe, base, words) if recipe.training.start_from else None
    second = _from_file(recipe, base, words) if recipe.data.vectors else None
    given = [begin for begin in (first, second) if begin is not None]
    return lambda model: [line for begin in given for line in begin(model)]


def _from_file(recipe: Recipe, base: Path, words: Tokenizer) -> Begin:
    path, width = locate(recipe.data.vectors, base), recipe.model.embedding
    names = words.names()
    known = {name: i for i, name in enumerate(names) if i >= len(SPECIALS)}
    found = read_vectors(path, set(known))
    if found.width != width:
        raise DataError(f"{path}: vectors of {found.width} numbers, but model.embedding = {width}")
    if not found.vectors:
        raise DataError(
            f"{path}: not one of the {len(known):,} words has a vector in it: another language? capitals"
            " (tokenizer.lowercase)?"
        )

    @torch.no_grad()
    def begin(model: Classifier) -> list[str]:
        for name, vector in found.vectors.items():
            model.embedding.weight[known[name]] = torch.from_numpy(vector)
        return [f"vectors for {len(found.vectors):,} of {len(known):,} words from {path.name}"]

    return begin


def _from_model(recipe: Recipe, base: Path, words: Tokenizer) -> Begin:
    from heedful.tasks.folder import open_model

    folder = locate_folder(recipe.training.start_from, base)
    other: Labeller = open_model(folder)
    if other.recipe.task.kind != "classify":
        raise ModelError(
            f"training.start_from: {folder} was trained to {other.recipe.task.kind}, not to classify"
        )
    places = {name: i for i, name in enumerate(other.words.source.names())}
    theirs = other.model.state_dict()
    both = [(i, places[name]) for i, name in enumerate(words.names()) if name in places]

    @torch.no_grad()
    def begin(model: Classifier) -> list[str]:
        mine = {name: tensor for name, tensor in model.state_dict().items() if not name.startswith(ANSWERS)}
        wrong = [n for n in mine if n not in theirs or theirs[n].shape[1:] != mine[n].shape[1:]]
        wrong += [n for n in mine if n != VECTORS and n not in wrong and theirs[n].shape != mine[n].shape]
        if wrong:
            changed = [line for line in differences(other.recipe, recipe) if line.startswith(READER)]
            listed = "\n".join(f"  - {line}" for line in changed)
            raise ModelError(
                f"training.start_from: the reader of {folder} is not of this recipe's shape:\n{listed}"
            )
        for name, tensor in mine.items():
            if name != VECTORS:
                tensor.copy_(theirs[name])
        here, there = (torch.tensor(rows) for rows in zip(*both, strict=True))
        mine[VECTORS][here] = theirs[VECTORS][there]
        return [f"the reader of {other.name}, and its vectors for {len(both):,} of {len(words):,} words"]

    return begin

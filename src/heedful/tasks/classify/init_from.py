"""Initialize a classifier with word vectors from a file, or with the encoder of another classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from heedful.config import Recipe, differences
from heedful.data.paths import locate, locate_folder
from heedful.data.tokenizer import SPECIALS, Tokenizer
from heedful.data.vectors import read_vectors
from heedful.errors import DataError, ModelError
from heedful.models import Classifier
from heedful.tasks.classify.assets import LoadedClassifier
from heedful.tasks.model_folder import load_model

EMBEDDING = "embedding.weight"
OUTPUT = "output."  # depends on the labels
ENCODER_SETTINGS = ("model.embedding", "model.encoder.", "model.attention.", "model.classifier.")
Initialize = Callable[[Classifier], Sequence[str]]


def make_initializer(recipe: Recipe, base: Path, tokenizer: Tokenizer) -> Initialize:
    """Return a function that initializes a new model; its files are read now, so that errors come first."""
    steps: list[Initialize] = []
    if recipe.training.init_from:
        steps.append(_copy_encoder(recipe, base, tokenizer))
    if recipe.data.vectors:
        steps.append(_load_vectors(recipe, base, tokenizer))
    return lambda model: [line for step in steps for line in step(model)]


def _load_vectors(recipe: Recipe, base: Path, tokenizer: Tokenizer) -> Initialize:
    """Initialize embeddings with word vectors from a file."""
    path, width = locate(recipe.data.vectors, base), recipe.model.embedding
    ids = {name: i for i, name in enumerate(tokenizer.vocabulary()) if i >= len(SPECIALS)}
    table = read_vectors(path, set(ids))
    if table.width != width:
        raise DataError(f"{path}: has vectors of {table.width} numbers, but model.embedding = {width}")
    if not table.vectors:
        raise DataError(
            f"{path}: has a vector for none of the {len(ids):,} words: another language, or another case"
            " (tokenizer.lowercase)?"
        )

    @torch.no_grad()
    def initialize(model: Classifier) -> list[str]:
        for name, vector in table.vectors.items():
            model.embedding.weight[ids[name]] = torch.from_numpy(vector)
        return [f"vectors for {len(table.vectors):,} of {len(ids):,} words from {path.name}"]

    return initialize


def _copy_encoder(recipe: Recipe, base: Path, tokenizer: Tokenizer) -> Initialize:
    """Initialize all weights but those of the output layer with another classifier's, embeddings word by word."""
    folder = locate_folder(recipe.training.init_from, base)
    other: LoadedClassifier = load_model(folder)
    if other.recipe.task.kind != "classify":
        raise ModelError(f"training.init_from: {folder} was trained to {other.recipe.task.kind}, not to classify")
    other_ids = {name: i for i, name in enumerate(other.assets.source.vocabulary())}
    other_weights = other.model.state_dict()
    shared = [(i, other_ids[name]) for i, name in enumerate(tokenizer.vocabulary()) if name in other_ids]

    @torch.no_grad()
    def initialize(model: Classifier) -> list[str]:
        weights = {name: tensor for name, tensor in model.state_dict().items() if not name.startswith(OUTPUT)}
        for name, tensor in weights.items():
            first = 1 if name == EMBEDDING else 0  # vocabularies may have different sizes
            if name not in other_weights or other_weights[name].shape[first:] != tensor.shape[first:]:
                changed = [line for line in differences(other.recipe, recipe) if line.startswith(ENCODER_SETTINGS)]
                listed = "\n".join(f"  - {line}" for line in changed)
                raise ModelError(f"training.init_from: the encoder of {folder} has a different shape:\n{listed}")
        for name, tensor in weights.items():
            if name != EMBEDDING:
                tensor.copy_(other_weights[name])
        rows, other_rows = (torch.tensor(ids) for ids in zip(*shared, strict=True))
        weights[EMBEDDING][rows] = other_weights[EMBEDDING][other_rows]
        return [
            f"initialized from {other.name}: its encoder, and embeddings of {len(shared):,} of {len(tokenizer):,} words"
        ]

    return initialize

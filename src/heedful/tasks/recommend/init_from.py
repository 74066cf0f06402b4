"""Initialize a recommender from the item embeddings of another one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from heedful.config import Recipe
from heedful.data.catalog import Catalog
from heedful.data.paths import locate_folder
from heedful.errors import ModelError
from heedful.models import Recommender
from heedful.tasks.init_from import Initialize
from heedful.tasks.model_folder import load_model
from heedful.tasks.recommend.assets import LoadedRecommender

EMBEDDINGS = ("target_embedding.weight", "history_embedding.weight", "bias")


def copy_item_embeddings(recipe: Recipe, base: Path, catalog: Catalog) -> Initialize:
    """Return a function that copies the item embeddings of `training.init_from` into a new model."""
    folder = locate_folder(recipe.training.init_from, base)
    other: LoadedRecommender = load_model(folder)
    source = other.model
    if not isinstance(source, Recommender):
        raise ModelError(f"{folder}: has no item embeddings to initialize from; train a model such as fism first")
    if other.assets.items != catalog.items:
        raise ModelError(f"{folder}: was trained on other items, so its embeddings cannot be used")

    def initialize(model: nn.Module) -> Sequence[str]:
        if not isinstance(model, Recommender):
            raise ModelError(f"training.init_from: {recipe.model.preset} has no item embeddings")
        width, other_width = model.target_embedding.embedding_dim, source.target_embedding.embedding_dim
        if width != other_width:
            raise ModelError(f"{folder}: its embeddings have width {other_width}, but model.embedding = {width}")
        with torch.no_grad():
            for name in EMBEDDINGS:
                model.get_parameter(name).copy_(source.get_parameter(name))
        return [f"item embeddings initialized from {other.name}"]

    return initialize

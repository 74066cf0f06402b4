"""The schema of a recipe, and checks for conflicts between its sections.

Defaults and descriptions of settings are in the classes of the sections; `heedful check` prints both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import Field, model_validator

from heedful.config.choice import Choice
from heedful.config.data import DataConfig, TokenizerConfig
from heedful.config.decoding import DecodingOptions
from heedful.config.model import ModelConfig
from heedful.config.training import TrainingConfig
from heedful.section import Section
from heedful.tasks.caption import config as caption
from heedful.tasks.classify import config as classify
from heedful.tasks.language_model import config as language_model
from heedful.tasks.recommend import config as recommend


class TaskConfig(Section):
    """The task of the model."""

    kind: Annotated[str, Choice("task")] = Field("translate", description="task that the model is trained for")


class Recipe(Section):
    """A complete recipe: task, data, tokenizer, model, training and decoding."""

    task: TaskConfig = TaskConfig()
    data: DataConfig
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingOptions = DecodingOptions()

    @model_validator(mode="after")
    def _check_conflicts(self) -> Self:
        conflicts = [
            *_vocabulary_conflicts(self),
            *_rdrop_conflicts(self),
            *recommend.recipe_conflicts(self),
            *caption.recipe_conflicts(self),
            *classify.recipe_conflicts(self),
            *language_model.recipe_conflicts(self),
        ]
        if conflicts:
            raise ValueError("; ".join(conflicts))
        return self


def _vocabulary_conflicts(recipe: Recipe) -> Iterator[str]:
    if recipe.tokenizer.shared:
        return
    if recipe.model.tie_embeddings == "all":
        yield 'model.tie_embeddings = "all": needs tokenizer.shared = true, one vocabulary for both sides'
    if recipe.model.copying:
        yield "model.copying = true: needs tokenizer.shared = true, one vocabulary for both sides"


def _rdrop_conflicts(recipe: Recipe) -> Iterator[str]:
    if not recipe.training.rdrop:
        return
    model, name = recipe.model, f"training.rdrop = {recipe.training.rdrop:g}"
    if model.recommender is not None or model.language_model is not None:
        yield f"{name}: is for generation and classification only"
    if model.copying:
        yield f"{name}: cannot be combined with model.copying = true"
    if model.attention.placement == "hard":
        yield f'{name}: cannot be combined with attention.placement = "hard", whose samples differ in the two passes'

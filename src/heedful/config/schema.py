"""The schema of a recipe, and checks for conflicts between its sections.

Defaults and descriptions of settings are in the classes of the sections; `heedful check` prints both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from heedful import registry
from heedful.config.choice import Choice
from heedful.config.data import DataConfig, TokenizerConfig
from heedful.config.decoding import DecodingOptions
from heedful.config.guided import guided_conflicts
from heedful.config.model import ModelConfig
from heedful.config.python_settings import to_overrides, to_tree
from heedful.config.training import TrainingConfig
from heedful.section import Section
from heedful.tasks.caption import config as caption
from heedful.tasks.classify import config as classify
from heedful.tasks.language_model import config as language_model
from heedful.tasks.recommend import config as recommend


class TaskConfig(Section):
    """The task of the model."""

    kind: Annotated[str, Choice("task")] = Field("translate", description="task that the model is trained for")


FROM_FILE, FROM_TREE = "heedful.config.load:load_recipe", "heedful.config.load:recipe_from_settings"
TO_TOML = "heedful.config.render:recipe_toml"  # these modules import this one, and are resolved when they are needed


class Recipe(Section):
    """A complete recipe: task, data, tokenizer, model, training and decoding.

    `heedful.train` takes one. `load` reads it from a file, `from_dict` makes it of settings in Python; both fill in
    what the preset says. Print a recipe to see every setting.

    >>> recipe = Recipe.from_dict({"data.world.name": "phrases", "model.preset": "cgru", "training.epochs": 3})
    >>> recipe
    <Recipe translate: preset cgru, world phrases>
    >>> recipe.training.epochs, recipe.model.decoder.step_order
    (3, 'conditional')
    """

    task: TaskConfig = TaskConfig()
    data: DataConfig
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingOptions = DecodingOptions()
    _base: Path | None = None  # the folder that relative paths start at; None: the working directory

    @classmethod
    def load(cls, path: str | Path, settings: Mapping[str, Any] | None = None) -> Recipe:
        """Read a recipe from a TOML file; `settings` replace its own, by dotted name or nested.

            heedful.Recipe.load("recipes/world-phrases.toml", {"training.epochs": 1})

        Relative paths in it start at the file's folder.
        """
        loaded = registry.resolve(FROM_FILE)(path, to_overrides(settings or {}))
        recipe: Recipe = loaded.recipe.model_copy()
        recipe._base = loaded.base
        return recipe

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Recipe:
        """Return the recipe with these settings, by dotted name or nested.

        Relative paths start at the working directory.

        >>> settings = {"task": {"kind": "read"}, "data": {"train": ["a.txt"], "split_valid": 0.1}}
        >>> Recipe.from_dict({**settings, "model.preset": "read-lstmn"}).task.kind
        'read'
        """
        recipe: Recipe = registry.resolve(FROM_TREE)(to_tree(settings)).recipe
        return recipe

    def to_toml(self) -> str:
        """Return every setting as TOML, which `load` reads as the same recipe."""
        text: str = registry.resolve(TO_TOML)(self)
        return text

    def save(self, path: str | Path) -> None:
        """Write every setting as a TOML file."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    def __repr__(self) -> str:
        world, files = self.data.world, ", ".join(self.data.train)
        source = f"world {world.name}" if world is not None else f"data {files}"
        return f"<Recipe {self.task.kind}: preset {self.model.preset}, {source}>"

    def __str__(self) -> str:
        return self.to_toml()

    @model_validator(mode="after")
    def _check_conflicts(self) -> Self:
        conflicts = [
            *_vocabulary_conflicts(self),
            *_rdrop_conflicts(self),
            *guided_conflicts(self),
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

"""The whole recipe, and what its sections ask of each other.

A setting's default and meaning stand in its section; the descriptions are what `heedful check` prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from heedful.config.classifier import label_misfits
from heedful.config.data import DataConfig, TokenizerConfig
from heedful.config.model import ModelConfig
from heedful.config.pictures import picture_misfits
from heedful.config.reader import reading_misfits
from heedful.config.recommender import taste_misfits
from heedful.config.section import Section
from heedful.config.training import DecodingConfig, TrainingConfig


class TaskConfig(Section):
    kind: Literal[
        "translate", "summarise", "reply", "transduce", "caption", "classify", "recommend", "read"
    ] = Field("translate", description="what the model is for")


class Recipe(Section):
    task: TaskConfig = TaskConfig()
    data: DataConfig
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.model.tie == "all" and not self.tokenizer.shared:
            raise ValueError(
                'model.tie = "all": needs tokenizer.shared = true, one vocabulary for both sides'
            )
        if self.model.copying and not self.tokenizer.shared:
            raise ValueError(
                "model.copying = true: needs tokenizer.shared = true, one vocabulary for both sides"
            )
        problems = [
            *_agreement_misfits(self),
            *_reward_misfits(self),
            *taste_misfits(self),
            *picture_misfits(self),
            *label_misfits(self),
            *reading_misfits(self),
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self


def _agreement_misfits(recipe: Recipe) -> Iterator[str]:
    if not recipe.training.agreement:
        return
    model, name = recipe.model, f"training.agreement = {recipe.training.agreement:g}"
    if model.recommender is not None or model.reader is not None:
        yield f"{name}: for models that write or classify only"
    if model.copying:
        yield f"{name}: not with model.copying = true, whose words have no scores of their own"
    if model.attention.placement == "hard":
        yield f'{name}: not with attention.placement = "hard", where two readings differ by their draws'


def _reward_misfits(recipe: Recipe) -> Iterator[str]:
    training = recipe.training
    if training.reward == "none":
        return
    name = f'training.reward = "{training.reward}"'
    if recipe.task.kind != "caption":
        yield f'{name}: only "caption" knows it, not "{recipe.task.kind}"'
        return
    if not training.start_from:
        yield f"{name}: needs training.start_from, a captioner that was trained on given captions first"
    if recipe.model.attention.placement == "hard":
        yield f'{name}: not with attention.placement = "hard", whose looks are drawn, too'
    if recipe.data.pictures is not None and recipe.data.pictures.tuned:
        yield f"{name}: not with data.pictures.tuned = true"
    unread = [key for key in ("agreement", "even", "sampling", "smoothing") if getattr(training, key)]
    if unread:
        yield f"{name}: training.{', training.'.join(unread)} are for given captions; set them to 0"

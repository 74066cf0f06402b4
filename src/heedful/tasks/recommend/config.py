"""The sections [model.recommender] and [data.ratings], and their conflicts with other settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from heedful.section import Columns, Section

if TYPE_CHECKING:
    from heedful.config.data import DataConfig
    from heedful.config.model import ModelConfig
    from heedful.config.schema import Recipe


class RatingsConfig(Section):
    """User-item interactions: data.columns of data.train are users, items and, if known, times."""

    titles: str = Field("", description="file of item titles")
    title_columns: Columns = Field(
        (), description="titles: names or numbers of the columns of item and title; empty: like data.columns"
    )
    hold_out: Literal["random", "last"] = Field(
        "random", description="the item held out per user where data.valid or data.test names none"
    )
    negatives: int = Field(
        99, gt=0, le=1_000_000, description="items that a held-out item is ranked against, where no file lists them"
    )


class RecommenderConfig(Section):
    """How the items of a history are combined to score another item."""

    kind: Literal["attention", "equal", "popularity"] = Field(
        "attention", description="history items weighted by attention, weighted equally, or ignored"
    )
    alpha: float = Field(0.0, ge=0.0, le=1.0, description="equal: each of n items has weight n^-alpha (1: the mean)")
    groups: int = Field(
        4, ge=2, le=1_000, description="self-attention: parts of a history, each predicted from the others"
    )


def model_conflicts(model: ModelConfig) -> Iterator[str]:
    """Yield an error message for each conflict between the settings of a recommender."""
    encoder, attention, recommender = model.encoder, model.attention, model.recommender
    assert recommender is not None
    if model.decoder != type(model.decoder)():
        yield "decoder: a recommender has no decoder; remove this section"
    if model.tie_embeddings != "none" or model.copying:
        yield "tie_embeddings, copying: a recommender generates no words"
    if encoder.kind not in ("embedding", "transformer"):
        yield (
            f'encoder.kind = "{encoder.kind}": a history has no order; use "embedding", or "transformer" for'
            " self-attention"
        )
    if encoder.kind == "transformer" and recommender.kind != "attention":
        yield f'encoder.kind = "transformer": has no effect with recommender.kind = "{recommender.kind}"'
    if encoder.kind == "transformer" and encoder.hidden != model.embedding:
        yield f"encoder.hidden = {encoder.hidden}: must equal embedding = {model.embedding}, the items' width"
    if encoder.kind == "transformer" and encoder.hidden % encoder.heads:
        yield f"encoder.heads = {encoder.heads}: does not divide encoder.hidden = {encoder.hidden}"
    if encoder.kind == "embedding" and model.dropout:
        yield f'dropout = {model.dropout}: is for self-attention (encoder.kind = "transformer")'
    if attention.placement not in ("global", "uniform") or attention.score == "location":
        yield "attention.placement, attention.score: a history has no order, so positions cannot be used"
    if attention.coverage or not attention.read_end:
        yield "attention.coverage, attention.read_end: a history is attended to once and has no end token"
    if attention.heads and model.embedding % attention.heads:
        yield f"attention.heads = {attention.heads}: does not divide embedding = {model.embedding}"


def ratings_problems(data: DataConfig, ratings: RatingsConfig) -> Iterator[str]:
    """Yield an error message for each data setting that contradicts [data.ratings]."""
    if data.world is None and len(data.train) != 1:
        yield "ratings: needs one file of users and items in train, or a world"
    if data.images is not None:
        yield "ratings, images: use one of these sections"
    if data.split_valid or data.split_test:
        yield "split_valid, split_test: ratings hold out one item per user (ratings.hold_out)"
    if ratings.hold_out == "last" and len(data.columns) == 2:
        yield 'ratings.hold_out = "last": needs the time, the third of columns'


def recipe_conflicts(recipe: Recipe) -> Iterator[str]:
    """Yield an error message for each setting that only recommenders have, or that they do not have."""
    kind, data = recipe.task.kind, recipe.data
    recommends = kind == "recommend"
    if recommends != (recipe.model.recommender is not None):
        yield (
            f'task.kind = "{kind}" and model.preset = "{recipe.model.preset}": task.kind = "recommend", and only that,'
            " uses a recommender (choose a preset such as nais-prod)"
        )
    has_users = data.world is not None and data.world.name == "tastes"
    if recommends and data.world is not None and not has_users:
        yield f'task.kind = "recommend": the world "{data.world.name}" has no users; use "tastes"'
    if recommends and data.ratings is None and data.world is None:
        yield 'task.kind = "recommend": needs a section [data.ratings]'
    if not recommends and (has_users or data.ratings is not None):
        yield f'task.kind = "{kind}": users and items are for task.kind = "recommend"'

"""The sections [model.recommender] and [data.ratings], and what does not fit them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, PositiveInt

from heedful.config.section import Section

if TYPE_CHECKING:
    from heedful.config.data import DataConfig
    from heedful.config.model import ModelConfig
    from heedful.config.schema import Recipe


class RatingsConfig(Section):
    """Who took what: data.train lists users and items in data.columns, data.test what was held out."""

    titles: str = Field("", description="a file with the titles of items")
    title_columns: Annotated[tuple[PositiveInt, PositiveInt], Field(strict=False)] = Field(
        (1, 2), description="its columns of item and title, counted from 1"
    )
    time: int = Field(0, ge=0, description="the column of the time; 0: there is none")
    header: bool = Field(False, description="does data.train begin with a line of names?")
    separator: str = Field("", description="between columns; without: a comma in .csv, else a tab")
    hold_out: Literal["random", "last"] = Field(
        "random", description="which item of each user is held out where data.valid or data.test names none"
    )
    negatives: PositiveInt = Field(
        99, description="items that a held-out one is ranked among, where no file names them"
    )


class RecommenderConfig(Section):
    kind: Literal["attention", "equal", "popularity"] = Field(
        "attention", description="what a history is to an item: weighed, summed, or not looked at"
    )
    alpha: float = Field(
        0.0, ge=0.0, le=1.0, description="equal: every weight is n^-alpha for n items (1: their mean)"
    )
    groups: int = Field(
        4, ge=2, description="self-attention: parts of a history, each learnt from all the others"
    )


def recommender_misfits(model: ModelConfig) -> Iterator[str]:
    encoder, attention, recommender = model.encoder, model.attention, model.recommender
    assert recommender is not None
    if model.decoder != type(model.decoder)():
        yield "decoder: a recommender writes nothing, so it has no such section"
    if model.tie != "none" or model.copying:
        yield "tie, copying: a recommender writes no words"
    if encoder.kind not in ("embedding", "transformer"):
        yield (
            f'encoder.kind = "{encoder.kind}": a history has no order; take "embedding", or "transformer" for'
            " self-attention"
        )
    if encoder.kind == "transformer" and recommender.kind != "attention":
        yield f'encoder.kind = "transformer": unread with recommender.kind = "{recommender.kind}"'
    if encoder.kind == "transformer" and encoder.hidden != model.embedding:
        yield f"encoder.hidden = {encoder.hidden}: must be embedding = {model.embedding}, the items' width"
    if encoder.kind == "transformer" and encoder.hidden % encoder.heads:
        yield f"encoder.heads = {encoder.heads}: does not divide encoder.hidden = {encoder.hidden}"
    if encoder.kind == "embedding" and model.dropout:
        yield f'dropout = {model.dropout}: belongs to self-attention (encoder.kind = "transformer")'
    if attention.placement not in ("global", "uniform") or attention.score == "location":
        yield "attention.placement, attention.score: a history has no order, so no place to look at"
    if attention.coverage or not attention.read_end:
        yield "attention.coverage, attention.read_end: a history is looked at once, and has no end token"
    if attention.heads and model.embedding % attention.heads:
        yield f"attention.heads = {attention.heads}: does not divide embedding = {model.embedding}"


def check_ratings(data: DataConfig, ratings: RatingsConfig) -> None:
    if data.world is None and len(data.train) != 1:
        raise ValueError("ratings: give one file of users and items in train, or a world")
    if data.pictures is not None:
        raise ValueError("give ratings or pictures, not both")
    if data.split_valid or data.split_test:
        raise ValueError("split_valid, split_test: of ratings one item a user is held out (ratings.hold_out)")
    if ratings.hold_out == "last" and not ratings.time:
        raise ValueError('ratings.hold_out = "last": needs ratings.time, the column of the time')


def taste_misfits(recipe: Recipe) -> Iterator[str]:
    """Settings of a whole recipe that only recommenders have, or that they cannot have."""
    kind, data = recipe.task.kind, recipe.data
    recommends = kind == "recommend"
    if recommends != (recipe.model.recommender is not None):
        yield (
            f'task.kind = "{kind}" and model.preset = "{recipe.model.preset}": histories, and only they, are'
            " read by a recommender (take a preset such as nais-prod)"
        )
    tastes = data.world is not None and data.world.name == "tastes"
    if recommends and data.world is not None and not tastes:
        yield f'task.kind = "recommend": the world "{data.world.name}" has no users'
    if recommends and data.ratings is None and data.world is None:
        yield 'task.kind = "recommend": needs ratings (section [data.ratings])'
    if not recommends and (tastes or data.ratings is not None):
        yield f'task.kind = "{kind}": users and items belong to "recommend"'

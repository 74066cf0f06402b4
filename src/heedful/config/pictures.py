"""The section [data.pictures], and what does not fit it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import Field, PositiveInt

from heedful.config.section import Section

if TYPE_CHECKING:
    from heedful.config.schema import Recipe


class PicturesConfig(Section):
    """Pictures with captions: where they are, and what sees them."""

    folder: str = Field("", description="the folder of the pictures that captions name")
    captions: str = Field("", description="Flickr8k tokens, Karpathy's or COCO's JSON, TSV or JSONL")
    backbone: str = Field("efficientnet-lite0", description="what sees them; or timm:NAME, module:NAME")
    layer: Literal["head", "top", "middle"] = Field("head", description="efficientnet: which of its maps")
    size: PositiveInt = Field(224, description="side of a picture as the backbone gets it, in pixels")
    weights: str = Field("", description="a file with the backbone's weights; else those of its package")
    tuned: bool = Field(False, description="the backbone learns too: slow, nothing can be kept; a low rate")


def picture_misfits(recipe: Recipe) -> Iterator[str]:
    """Settings of a whole recipe that only captioners have, or that they cannot have."""
    kind, data, encoder = recipe.task.kind, recipe.data, recipe.model.encoder.kind
    sees = kind == "caption"
    if sees != (encoder == "regions"):
        yield (
            f'task.kind = "{kind}" and model.encoder.kind = "{encoder}": captions, and only they, are read'
            ' from "regions" (take a preset such as caption-soft)'
        )
    scenes = data.world is not None and data.world.name == "scenes"
    if sees and data.pictures is None and data.world is None:
        yield 'task.kind = "caption": needs pictures (section [data.pictures])'
    if sees and data.world is not None and not scenes:
        yield f'task.kind = "caption": the world "{data.world.name}" has no pictures'
    if not sees and (scenes or data.pictures is not None):
        yield f'task.kind = "{kind}": reads text, not pictures'

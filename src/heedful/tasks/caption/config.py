"""The section [data.images], and the conflicts of captioning with other settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from heedful.section import Section

if TYPE_CHECKING:
    from heedful.config.data import WorldConfig
    from heedful.config.schema import Recipe


class ImagesConfig(Section):
    """Images with captions, and the backbone that extracts their features."""

    folder: str = Field("", description="folder of the images that the captions name")
    captions: str = Field(
        "", description="captions: a table (data.columns: image, caption), Flickr8k tokens, Karpathy's or COCO's JSON"
    )
    backbone: str = Field("efficientnet-lite0", description="image backbone; or timm:NAME, or a registered one")
    layer: Literal["head", "top", "middle"] = Field("head", description="efficientnet: feature map to use")
    size: int = Field(224, gt=0, le=1_024, description="side of an image at the backbone's input, in pixels")
    weights: str = Field("", description="file with the backbone's weights; empty: those of its package")
    tune_backbone: bool = Field(
        False, description="train the backbone too: slow, features cannot be cached; use a low learning rate"
    )


def image_problems(world: WorldConfig | None, images: ImagesConfig) -> Iterator[str]:
    """Yield an error message for each data setting that contradicts [data.images]."""
    if world is None and not (images.folder and images.captions):
        yield "images: needs a folder and a captions file, or a world"
    if world is not None and (images.folder or images.captions):
        yield "images, world: use image files or a world, not both"


def recipe_conflicts(recipe: Recipe) -> Iterator[str]:
    """Yield an error message for each setting that only captioning has, or that it does not have."""
    kind, data, encoder = recipe.task.kind, recipe.data, recipe.model.encoder.kind
    captions = kind == "caption"
    if captions != (encoder == "regions"):
        yield (
            f'task.kind = "{kind}" and model.encoder.kind = "{encoder}": task.kind = "caption", and only that, needs'
            ' encoder.kind = "regions" (choose a preset such as caption-soft)'
        )
    scenes = data.world is not None and data.world.name == "scenes"
    if captions and data.images is None and data.world is None:
        yield 'task.kind = "caption": needs a section [data.images]'
    if captions and data.world is not None and not scenes:
        yield f'task.kind = "caption": the world "{data.world.name}" has no images; use "scenes"'
    if not captions and (scenes or data.images is not None):
        yield f'task.kind = "{kind}": images are for task.kind = "caption"'
    yield from _reward_conflicts(recipe)


def _reward_conflicts(recipe: Recipe) -> Iterator[str]:
    training = recipe.training
    if training.reward == "none":
        return
    name = f'training.reward = "{training.reward}"'
    if recipe.task.kind != "caption":
        yield f'{name}: is for task.kind = "caption", not "{recipe.task.kind}"'
        return
    if not training.init_from:
        yield f"{name}: needs training.init_from, a captioning model trained on reference captions"
    if recipe.model.attention.placement == "hard":
        yield f'{name}: cannot be combined with attention.placement = "hard", which samples as well'
    if recipe.data.images is not None and recipe.data.images.tune_backbone:
        yield f"{name}: cannot be combined with data.images.tune_backbone = true"
    reference_only = ("rdrop", "doubly_stochastic", "scheduled_sampling", "label_smoothing")
    nonzero = [f"training.{key}" for key in reference_only if getattr(training, key)]
    if nonzero:
        yield f"{name}: {', '.join(nonzero)} need reference captions; set them to 0"

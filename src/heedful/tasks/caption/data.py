"""The images and captions of every split, and the features that a backbone extracts from them."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Protocol

from heedful.config import ImagesConfig, Recipe
from heedful.data.captions import CaptionedImage, normalize_caption, read_captions, split_captions
from heedful.data.images.backbone import Backbone, is_downloaded, open_backbone
from heedful.data.images.features import OnBadImage
from heedful.data.images.files import ImageFile, ImageSource, SceneImage
from heedful.data.paths import locate, locate_folder
from heedful.data.worlds.scenes import SceneObject, draw_scene
from heedful.errors import DataError, ModelError
from heedful.parallel import OnProgress
from heedful.tasks.caption.assets import BACKBONE_WEIGHTS, CaptionAssets
from heedful.training.types import Callbacks

SPLITS = ("train", "valid", "test")
N_NAMED = 5  # unreadable images that an error names


class Item(NamedTuple):
    """An image and its captions, and the objects of a generated scene."""

    image: ImageSource
    captions: tuple[str, ...]
    objects: tuple[SceneObject, ...] = ()


class ImageReader(Protocol):
    """Reads images and remembers which are readable: a feature cache, or a backbone that is being trained."""

    def extract(
        self, images: Sequence[ImageSource], on_progress: OnProgress, on_bad_image: OnBadImage | None
    ) -> None: ...
    def has(self, image: ImageSource) -> bool: ...


def images_config(recipe: Recipe) -> ImagesConfig:
    """Return the section [data.images], or its defaults."""
    return recipe.data.images or ImagesConfig()


def backbone_weights(recipe: Recipe, base: Path) -> Path | None:
    """Return the file of weights that the recipe of a training names, if any."""
    config = images_config(recipe)
    return locate(config.weights, base) if config.weights else None


def open_recipe_backbone(recipe: Recipe, weights: Path | None) -> Backbone:
    """Return the backbone that a recipe names, with the weights of a file or, if None, of its package."""
    config = images_config(recipe)
    return open_backbone(config.backbone, config.layer, config.size, weights)


def open_model_backbone(recipe: Recipe, assets: CaptionAssets) -> Backbone:
    """Return the backbone of a model; files outside the model folder are not opened, and nothing is downloaded."""
    config = images_config(recipe)
    needs_weights = bool(config.weights) or is_downloaded(config.backbone)
    if needs_weights and assets.weights is None and assets.network is None:
        raise ModelError(
            f"the model folder has no {BACKBONE_WEIGHTS}, the weights of backbone {config.backbone}; copy them there"
        )
    return open_recipe_backbone(recipe, assets.weights)


def open_items(recipe: Recipe, base: Path) -> dict[str, list[Item]]:
    """Return the images of every split that the recipe names, with normalized captions."""
    if recipe.data.world is not None:
        return _world_items(recipe)
    config = images_config(recipe)
    captioned, split_of, _ = read_captions(locate(config.captions, base), recipe.data)
    files = {split: getattr(recipe.data, split) for split in SPLITS}
    lists = {split: locate(names[0], base) for split, names in files.items() if names}
    if not lists and not split_of:
        split_of = _split_by_hash(captioned, recipe)
    folder = locate_folder(config.folder, base)
    splits = split_captions(captioned, split_of, lists)
    for split in ("train", "valid"):
        if not splits.get(split):
            raise DataError(f"the {split} split has no images: name a list in data.{split}, or set data.split_valid")
    return {
        split: [Item(ImageFile(folder / item.image), tuple(map(normalize_caption, item.captions))) for item in items]
        for split, items in splits.items()
    }


def describe_captions(recipe: Recipe, base: Path) -> list[str]:
    """Return a line for the log about the columns of a captions file, if it is a table."""
    if recipe.data.world is not None:
        return []
    note = read_captions(locate(images_config(recipe).captions, base), recipe.data).note
    return [note] if note else []


def _split_by_hash(captioned: Sequence[CaptionedImage], recipe: Recipe) -> dict[str, str]:
    """Return the split of each image by a hash of its name, if the recipe sets data.split_valid."""
    valid, test = recipe.data.split_valid, recipe.data.split_test
    if not valid:
        return {}
    split_of = {}
    for item in captioned:
        position = int.from_bytes(sha256(item.image.encode()).digest()[:8], "big") / 2**64
        split_of[item.image] = "valid" if position < valid else "test" if position < valid + test else "train"
    return split_of


def _world_items(recipe: Recipe) -> dict[str, list[Item]]:
    world = recipe.data.world
    assert world is not None
    first, splits = 0, {}
    for split in SPLITS:
        items = []
        for number in range(first, first + getattr(world, split)):
            drawn = draw_scene(number, world.seed, world.pixels, order=world.order)
            captions = tuple(" ".join(words) for words in drawn.captions)
            items.append(Item(SceneImage(number, world.seed, world.pixels), captions, drawn.objects))
        first += len(items)
        splits[split] = items
    return splits


def readable_items(
    items: Sequence[Item], reader: ImageReader, recipe: Recipe, callbacks: Callbacks
) -> tuple[list[Item], list[str]]:
    """Read all images; return the items whose images can be read, and notes about the others.

    With `data.on_error = "error"`, an unreadable image is an error.
    """
    errors: list[str] = []
    with callbacks.on_busy("extracting image features", len(items)) as on_progress:
        reader.extract([item.image for item in items], on_progress, errors.append)
    if not errors:
        return list(items), []
    listed = "\n".join(f"  - {line}" for line in errors[:N_NAMED])
    more = f"\n  and {len(errors) - N_NAMED:,} more" if len(errors) > N_NAMED else ""
    message = f"{len(errors):,} of {len(items):,} images cannot be used:\n{listed}{more}"
    if recipe.data.on_error == "error":
        raise DataError(f'{message}\ndata.on_error = "skip" continues without them')
    readable = [item for item in items if reader.has(item.image)]
    if not readable:
        raise DataError(message)
    return readable, [message]

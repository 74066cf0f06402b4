"""Caption images with a trained model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from torch import Tensor

from heedful.attention import NO_HOOKS, Hooks
from heedful.config import DecodingOptions
from heedful.data.batch import TextBatch
from heedful.data.images.backbone import Backbone
from heedful.data.images.features import CachedFeatures, compute_features
from heedful.data.images.files import ImageSource, resize_square
from heedful.decoding import NEVER, Hypothesis, StopCondition, search_all
from heedful.errors import ModelError
from heedful.models import AutoregressiveModel
from heedful.tasks.caption.assets import BackboneInfo, LoadedCaptioner, all_regions
from heedful.tasks.caption.data import Item, images_config, open_model_backbone
from heedful.tasks.caption.tuned_backbone import check_tunable, get_tuned_network

Pixels = npt.NDArray[np.uint8]  # (height, width, 3)


def load_backbone(loaded: LoadedCaptioner) -> Backbone:
    """Return the backbone that a model was trained with; raise ModelError if its weights or version differ."""
    backbone, config = open_model_backbone(loaded.recipe, loaded.assets), images_config(loaded.recipe)
    if BackboneInfo.of(backbone) != loaded.assets.backbone_info:
        raise ModelError(f"{loaded.name} was trained with other weights, or another version, of {config.backbone}")
    if config.tune_backbone:
        check_tunable(backbone, config.backbone).net = get_tuned_network(loaded.model)
    return backbone


def open_features(loaded: LoadedCaptioner) -> CachedFeatures:
    """Return the feature cache of a model's backbone; a tuned backbone has a cache of its own."""
    tuned = images_config(loaded.recipe).tune_backbone
    return CachedFeatures(load_backbone(loaded), weights_hash=loaded.sha256() if tuned else "")


def open_pixels(image: ImageSource, backbone: Backbone) -> Pixels:
    """Return an image in the size of the backbone, so that many opened images need little memory."""
    return resize_square(image.open(), backbone.size)


def search_images(
    model: AutoregressiveModel,
    backbone: Backbone,
    images: Sequence[Pixels],
    options: DecodingOptions,
    hooks: Hooks = NO_HOOKS,
    threads: int = 1,
    stop: StopCondition = NEVER,
) -> list[list[Hypothesis]]:
    """Return the captions of each image, best first, without the cache; `open_pixels` opens images."""

    def make_batch(rows: Sequence[int]) -> TextBatch:
        return TextBatch(all_regions(compute_features(backbone, [images[row] for row in rows])))

    return search_all(model, make_batch, [1] * len(images), options, hooks, threads=threads, stop=stop)


def search_items(
    model: AutoregressiveModel,
    get_features: Callable[[Sequence[ImageSource]], Tensor],
    items: Sequence[Item],
    options: DecodingOptions,
    hooks: Hooks = NO_HOOKS,
    threads: int = 1,
    stop: StopCondition = NEVER,
) -> list[list[Hypothesis]]:
    """Return the captions of each item, best first; `get_features` returns (image, region, width)."""

    def make_batch(rows: Sequence[int]) -> TextBatch:
        return TextBatch(all_regions(get_features([items[row].image for row in rows])))

    return search_all(model, make_batch, [1] * len(items), options, hooks, threads=threads, stop=stop)

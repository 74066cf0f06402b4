"""Caption images with a trained model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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
from heedful.tasks.generation_result import UnlikeNotes

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
    pooled: npt.NDArray[np.float64] | None = None,
) -> list[list[Hypothesis]]:
    """Return the captions of each image, best first, without the cache; `open_pixels` opens images.

    The mean features of each image are written to `pooled` (image, width).
    """

    def make_batch(rows: Sequence[int]) -> TextBatch:
        features = compute_features(backbone, [images[row] for row in rows])
        if pooled is not None:
            pooled[list(rows)] = pool_features(features)
        return TextBatch(all_regions(features))

    return search_all(model, make_batch, [1] * len(images), options, hooks, threads=threads, stop=stop)


def pool_features(features: Tensor) -> npt.NDArray[np.float64]:
    """Return the mean over regions of features (image, region, width)."""
    return features.double().mean(dim=1).numpy()


def find_unlike(loaded: LoadedCaptioner, pooled: npt.NDArray[np.float64]) -> list[bool | None]:
    """Return for each image whether it is unlike the training images, by its mean features; None if not known."""
    statistics = loaded.assets.statistics
    if statistics is None:
        return [None] * len(pooled)
    return [bool(score > statistics.threshold) for score in statistics.scores(pooled)]


def caption_records(
    loaded: LoadedCaptioner,
    backbone: Backbone,
    names: Sequence[str],
    images: Sequence[Pixels],
    options: DecodingOptions,
    threads: int = 1,
    stop: StopCondition = NEVER,
    notes: UnlikeNotes | None = None,
) -> list[dict[str, Any]]:
    """Return a record per image: its captions with their scores, and whether it is unlike the training images."""
    pooled = np.zeros((len(images), backbone.width))
    results = search_images(loaded.model, backbone, images, options, threads=threads, stop=stop, pooled=pooled)
    records = []
    for name, hypotheses, unlike in zip(names, results, find_unlike(loaded, pooled), strict=True):
        outputs = [
            {
                "text": loaded.assets.target.decode(h.tokens),
                "logp": h.logp,
                "score": h.score,
                "confidence": h.confidence,
                "finished": h.finished,
            }
            for h in hypotheses
        ]
        reliability = {"confidence": hypotheses[0].confidence, "unlike_training": unlike}
        records.append({"image": name, "outputs": outputs, **reliability})
        if unlike and notes is not None:
            notes.add(name, "this image is unlike the training data")
    return records


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

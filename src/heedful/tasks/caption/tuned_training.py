"""Training of a captioner together with its backbone: batches of pixels instead of cached features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.attention import NO_HOOKS, Hooks
from heedful.config import DecodingOptions, Recipe
from heedful.data.batch import EncodedPair, Padded, TextBatch, pad
from heedful.data.images.files import ImageSource
from heedful.data.tokenizer import START
from heedful.decoding import Hypothesis
from heedful.models import Seq2Seq
from heedful.tasks.caption.assets import CaptionAssets, all_regions
from heedful.tasks.caption.data import Item
from heedful.tasks.caption.predict import search_items
from heedful.tasks.caption.training import CaptionTraining
from heedful.tasks.caption.tuned_backbone import OnTheFlyFeatures
from heedful.tasks.generation_loss import generation_loss
from heedful.training import Loss


class PixelBatch(NamedTuple):
    """Distinct images, and captions that refer to them."""

    pixels: Tensor  # (image, side, side, 3), bytes
    image_of: Tensor  # (caption,)
    target: Padded

    @property
    def size(self) -> int:
        return len(self.image_of)

    def rows(self, start: int, step: int) -> PixelBatch:
        """Return every `step`-th caption from `start` on, with the images they refer to."""
        used, image_of = torch.unique(self.image_of[start::step], return_inverse=True)
        return PixelBatch(self.pixels[used], image_of, self.target.rows(start, step))

    def to(self, device: torch.device) -> PixelBatch:
        return PixelBatch(self.pixels.to(device), self.image_of.to(device), self.target.to(device))


class TunedCaptionTraining(CaptionTraining):
    """Captions of images whose features are computed at every step."""

    features: OnTheFlyFeatures  # type: ignore[assignment]

    def __init__(
        self, recipe: Recipe, items: dict[str, list[Item]], assets: CaptionAssets, features: OnTheFlyFeatures
    ) -> None:
        super().__init__(recipe, items, assets, features)  # type: ignore[arg-type]

    def _make_batch(self, items: Sequence[Item], examples: Sequence[EncodedPair]) -> PixelBatch:  # type: ignore[override]
        numbers = sorted({example.source[0] for example in examples})
        index = {number: position for position, number in enumerate(numbers)}
        return PixelBatch(
            self.features.pixels([items[number].image for number in numbers]),
            torch.tensor([index[example.source[0]] for example in examples]),
            pad([[START, *example.target] for example in examples]),
        )

    def loss(self, model: Seq2Seq, batch: PixelBatch) -> Loss:  # type: ignore[override]
        """Return the summed loss, with gradients into the backbone."""
        features = self.features.encode(model, batch.pixels)[batch.image_of]
        return generation_loss(model, TextBatch(all_regions(features), batch.target), self.recipe)

    def search(
        self, model: Seq2Seq, options: DecodingOptions, hooks: Hooks = NO_HOOKS, limit: int | None = None
    ) -> list[list[Hypothesis]]:
        def get_features(images: Sequence[ImageSource]) -> Tensor:
            return self.features.encode(model, self.features.pixels(images))

        threads = torch.get_num_threads()
        return search_items(model, get_features, self.valid[:limit], options, hooks, threads)

"""Training of captioners: batches of captions with the features of their images, and validation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from heedful.attention import NO_HOOKS, Hooks
from heedful.config import DecodingOptions, Recipe, TokenizerConfig
from heedful.data.batch import BucketBatches, EncodedPair, TextBatch, pad
from heedful.data.images.features import CachedFeatures
from heedful.data.images.image_statistics import N_TRAIN, N_VALID, ImageStatistics
from heedful.data.tokenizer import START, Tokenizer
from heedful.decoding import Hypothesis
from heedful.models import Seq2Seq
from heedful.tasks.caption.assets import CaptionAssets, all_regions
from heedful.tasks.caption.data import Item
from heedful.tasks.caption.predict import pool_features, search_items
from heedful.tasks.generation import VALIDATION_ROWS, GenerationTraining, validation_metrics

POOL_ROWS = 64  # images per step of computing statistics
VALIDATION_METRICS = ("caption-bleu-4", "cider")


def train_caption_tokenizer(items: Sequence[Item], config: TokenizerConfig) -> Tokenizer:
    """Train a tokenizer on the captions; output words are never decomposed into characters."""
    captions = (caption for item in items for caption in item.captions)
    return Tokenizer.train(captions, config.model_copy(update={"decompose": False}))


def image_statistics(train: Sequence[Item], valid: Sequence[Item], features: CachedFeatures) -> ImageStatistics | None:
    """Return the statistics of the training images, with a threshold by the validation images."""

    def pool(items: Sequence[Item], limit: int) -> np.ndarray:
        images = [item.image for item in items[:: -(-len(items) // limit)]]
        starts = range(0, len(images), POOL_ROWS)
        return np.concatenate([pool_features(features.load(images[i : i + POOL_ROWS])) for i in starts])

    return ImageStatistics.fit(pool(train, N_TRAIN), pool(valid, N_VALID))


class CaptionTraining(GenerationTraining):
    """Batches of captions of similar length, and validation on held-out images."""

    has_end_token = False

    def __init__(
        self, recipe: Recipe, items: dict[str, list[Item]], assets: CaptionAssets, features: CachedFeatures
    ) -> None:
        self.recipe, self.assets, self.features, self.target = recipe, assets, features, assets.target
        self.metrics = validation_metrics(recipe.training.metric, VALIDATION_METRICS)
        self.train, self.valid = items["train"], items["valid"]
        if recipe.training.validate_pairs:
            self.valid = self.valid[: recipe.training.validate_pairs]
        self.corpus = self._encode(self.train)
        self.buckets = BucketBatches(self.corpus, recipe.training.batch_tokens, recipe.training.seed)
        self.valid_corpus = self._encode(self.valid)
        self.sources = [item.image.name for item in self.valid]
        self.references = [item.captions for item in self.valid]

    def _encode(self, items: Sequence[Item]) -> list[EncodedPair]:
        """Return one example per caption, truncated; its source is the number of the image."""
        tokenizer, limit = self.target, self.recipe.data.max_target
        return [
            EncodedPair([number], tokenizer.encode(tokenizer.truncate(caption, limit)))
            for number, item in enumerate(items)
            for caption in item.captions
        ]

    def _make_batch(self, items: Sequence[Item], examples: Sequence[EncodedPair]) -> TextBatch:
        images = [items[example.source[0]].image for example in examples]
        target = pad([[START, *example.target] for example in examples])
        return TextBatch(all_regions(self.features.load(images)), target)

    def batches(self, epoch: int, start: int = 0, rank: int = 0, world_size: int = 1) -> Iterator[TextBatch]:
        """Yield the batches of an epoch that belong to one process."""
        plan = self.buckets.epoch_plan(epoch)
        for number in range(start + rank, len(plan), world_size):
            yield self._make_batch(self.train, [self.corpus[row] for row in plan.batch_rows(number)])

    def validation_batches(self) -> Iterator[TextBatch]:
        for first in range(0, len(self.valid_corpus), VALIDATION_ROWS):
            yield self._make_batch(self.valid, self.valid_corpus[first : first + VALIDATION_ROWS])

    def search(
        self, model: Seq2Seq, options: DecodingOptions, hooks: Hooks = NO_HOOKS, limit: int | None = None
    ) -> list[list[Hypothesis]]:
        threads = torch.get_num_threads()
        return search_items(model, self.features.load, self.valid[:limit], options, hooks, threads)

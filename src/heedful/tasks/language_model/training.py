"""Training of language models: batches of sentences or windows, and validation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from heedful.config import Recipe
from heedful.data.batch import BucketBatches
from heedful.data.text import EncodedText, LanguageModelBatch, WindowBatches, sentence_batch
from heedful.data.tokenizer import START
from heedful.errors import TrainingError, nearest
from heedful.metrics.surprisal import perplexity_state
from heedful.models import LanguageModel
from heedful.optional import not_none
from heedful.tasks.language_model.data import reading_config
from heedful.tasks.language_model.score import context_state, score_batch, token_surprisals
from heedful.training import Loss, Validation

METRICS = ("loss", "perplexity")


class LanguageModelTraining:
    """Batches of sentences or of windows of a long text, and the perplexity of the validation text."""

    def __init__(self, recipe: Recipe, train: EncodedText, valid: EncodedText) -> None:
        self.recipe, self.train, self.valid = recipe, train, valid
        reading, training = reading_config(recipe), recipe.training
        if training.metric not in METRICS:
            suggestion = nearest(training.metric, METRICS)
            raise TrainingError(f'training.metric = "{training.metric}": this task has no such metric; {suggestion}')
        context = 0 if not_none(recipe.model.language_model).kind == "transformer" else reading.context
        self.windows = WindowBatches(train.flat, reading.window, context, training.batch_tokens, training.seed)
        self.buckets = BucketBatches(train, training.batch_tokens, training.seed)
        self.by_sentence = reading.protocol == "sentences"

    def batches(self, epoch: int, start: int = 0, rank: int = 0, world_size: int = 1) -> Iterator[LanguageModelBatch]:
        """Yield the batches of an epoch that belong to one process."""
        if not self.by_sentence:
            windows = self.windows.plan(epoch)
            yield from (self.windows.batch(windows[number]) for number in range(start + rank, len(windows), world_size))
            return
        plan = self.buckets.epoch_plan(epoch)
        for number in range(start + rank, len(plan), world_size):
            yield sentence_batch([self.train[row].target for row in plan.batch_rows(number)], START)

    def steps_per_epoch(self, world_size: int = 1) -> int:
        """Return the number of batches per epoch, of the process that gets the most."""
        count = len(self.buckets.epoch_plan(1)) if self.by_sentence else len(self.windows.plan(1))
        return -(-count // world_size)

    def split_batch(self, batch: LanguageModelBatch, n_parts: int) -> list[LanguageModelBatch]:
        """Split by rows; dropout is the only randomness."""
        if len(batch.targets) < 2 * n_parts:
            return [batch]
        return [batch.rows(start, n_parts) for start in range(n_parts)]

    def loss(self, model: LanguageModel, batch: LanguageModelBatch) -> Loss:
        """Return the summed cross-entropy of a batch."""
        smoothing = self.recipe.training.label_smoothing if model.training else 0.0
        scores = score_batch(model, batch, context_state(model, batch), smoothing=smoothing)
        return Loss(scores.total, len(scores.surprisal))

    @torch.inference_mode()
    def validate(self, model: LanguageModel) -> Validation:
        """Return the perplexity of the validation text, and its logarithm."""
        value = perplexity_state(token_surprisals(model, self.valid, self.recipe), "").metric().value
        return Validation({"loss": float(np.log(value)), "perplexity": value})

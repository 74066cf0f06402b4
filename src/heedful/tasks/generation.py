"""Code shared by the tasks that generate text: ensembles, and training with validation of greedy outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice

import torch

from heedful.attention import NO_HOOKS, Detail, Hooks
from heedful.config import DecodingOptions, ModelConfig, Recipe
from heedful.data.batch import BucketBatches, TextBatch
from heedful.data.tokenizer import Tokenizer
from heedful.decoding import Ensemble, Hypothesis
from heedful.errors import TrainingError, nearest
from heedful.inference.optimize import optimize_for_inference
from heedful.metrics import evaluate, find_metric, metric_names
from heedful.metrics.state import References, list_references
from heedful.models import AutoregressiveModel, Seq2Seq
from heedful.tasks.base import UNIFORM_WEIGHTS, Variant
from heedful.tasks.generation_loss import generation_loss, split_text_batch
from heedful.training import Loss, Sample, Validation
from heedful.training.health import attention_warnings

N_SAMPLES = 3  # shown after each validation
N_MONITORED = 32  # validation items whose attention is checked
VALIDATION_ROWS = 100  # per batch


def make_generator(models: Sequence[Seq2Seq], int8: bool = False) -> AutoregressiveModel:
    """Return one model, or an ensemble of several; `int8` quantizes their large matrices."""
    generators: list[AutoregressiveModel] = [optimize_for_inference(model) if int8 else model for model in models]
    return Ensemble(generators) if len(generators) > 1 else generators[0]


def validation_metrics(metric: str, defaults: tuple[str, ...] = ("bleu",)) -> tuple[str, ...]:
    """Return the names of the metrics to validate with, in addition to the loss and exact match."""
    if metric in ("loss", "exact", *defaults):
        return defaults
    spec = find_metric(metric)
    if spec is None or not spec.takes_text:
        suggestion = nearest(metric, ("loss", *metric_names()))
        raise TrainingError(f'training.metric = "{metric}": this task has no such metric; {suggestion}')
    return (*defaults, metric)


class GenerationTraining(ABC):
    """The loss and the validation of an encoder-decoder; subclasses provide the batches."""

    recipe: Recipe
    target: Tokenizer
    metrics: tuple[str, ...]  # in addition to the loss and exact match
    buckets: BucketBatches
    sources: Sequence[str]  # of the validation items, for sample outputs
    references: References  # one or several per validation item
    has_end_token: bool  # whether the source ends with one; its share of the weights is monitored

    @abstractmethod
    def validation_batches(self) -> Iterator[TextBatch]:
        """Yield the validation data."""

    @abstractmethod
    def search(
        self, model: Seq2Seq, options: DecodingOptions, hooks: Hooks = NO_HOOKS, limit: int | None = None
    ) -> list[list[Hypothesis]]:
        """Return hypotheses for the first `limit` validation items."""

    def steps_per_epoch(self, world_size: int = 1) -> int:
        """Return the number of batches per epoch, of the process that gets the most."""
        return -(-len(self.buckets.epoch_plan(1)) // world_size)

    def split_batch(self, batch: TextBatch, n_parts: int) -> list[TextBatch]:
        """Split a batch for several threads."""
        return split_text_batch(batch, n_parts, self.recipe)

    def loss(self, model: Seq2Seq, batch: TextBatch) -> Loss:
        """Return the summed loss of a batch."""
        return generation_loss(model, batch, self.recipe)

    @torch.inference_mode()
    def validate(self, model: Seq2Seq) -> Validation:
        """Return the loss per token, the metrics of greedy outputs, samples, and warnings about attention."""
        total, count = 0.0, 0
        for batch in self.validation_batches():
            loss = self.loss(model, batch)
            total, count = total + float(loss.total), count + loss.tokens
        options = self.recipe.decoding.model_copy(update={"method": "greedy", "n_best": 1})
        outputs = [self.target.decode(best[0].tokens) for best in self.search(model, options)]
        names = ("exact", *self.metrics)
        metrics = {name: evaluate([name], outputs, self.references)[0].value for name in names}
        firsts = [references[0] for references in list_references(outputs, self.references)]
        rows = islice(zip(self.sources, firsts, outputs, strict=True), N_SAMPLES)
        samples = [Sample(*row) for row in rows]
        return Validation({"loss": total / count, **metrics}, samples, self._attention_warnings(model))

    def _attention_warnings(self, model: Seq2Seq) -> list[str]:
        site = model.alignment_site
        if site is None or self.recipe.model.attention.placement == "uniform":
            return []
        options = DecodingOptions(max_length=self.recipe.decoding.max_length)
        hypotheses = self.search(model, options, Hooks(Detail.WEIGHTS, frozenset({site})), N_MONITORED)
        weights = [best[0].attentions[site].float().mean(dim=1).numpy() for best in hypotheses]
        ends = [matrix.shape[-1] - 1 for matrix in weights] if self.has_end_token else None
        return attention_warnings(site, weights, ends)


def generation_baselines(model: ModelConfig) -> list[Variant]:
    """Return the variants with uniform weights and without attention, if the decoder is recurrent and attends."""
    if not model.decoder.recurrent or model.decoder.source != "attention":
        return []
    keys = ("source=init", "input_feeding=none", "combine=false", "gate=false")
    return [UNIFORM_WEIGHTS, Variant("baseline: no attention", tuple(f"model.decoder.{key}" for key in keys))]

"""Training of recommenders: batches of interactions with negatives, and ranking of held-out items."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

import numpy as np
import torch

from heedful.attention import Detail, Hooks
from heedful.config import Recipe
from heedful.data.histories import HistoryBatch, InteractionBatches, PositiveSlice
from heedful.data.ratings import Ratings
from heedful.errors import DataError, TrainingError
from heedful.metrics.ranking import DEFAULT_METRICS, Ranks, parse_ranking_metric, ranking_metric
from heedful.models import Popularity, Recommender
from heedful.tasks.recommend.score import rank_held_out
from heedful.training import Loss, Sample, Validation
from heedful.training.health import attention_warnings

N_SAMPLES = 3  # shown after each validation
N_MONITORED = 32  # validation users whose attention is checked
N_LISTED = 4  # items of a history that a sample names


class RecommendationTraining:
    """Batches of interactions, and validation by the rank of each user's held-out item."""

    def __init__(self, recipe: Recipe, ratings: Ratings) -> None:
        training = recipe.training
        self.recipe, self.catalog = recipe, ratings.catalog
        self.metrics = _validation_metrics(training.metric)
        held_out = ratings.held_out["valid"]
        if not len(held_out):
            raise DataError("no validation data: no user has enough items for one to be held out")
        self.histories = self.catalog.histories.without(held_out.users, held_out.items)
        self.valid = held_out.first(training.validate_pairs)
        positives = training.batch_tokens // (1 + training.negatives)
        self_attention = recipe.model.encoder.kind == "transformer" and recipe.model.recommender
        self.interactions = InteractionBatches(
            self.histories,
            len(self.catalog.items),
            positives,
            training.negatives,
            training.seed,
            groups=self_attention.groups if self_attention else 0,
        )
        self._plan: tuple[int, list[list[PositiveSlice]]] = (0, [])

    def plan(self, epoch: int) -> list[list[PositiveSlice]]:
        """Return the batches of an epoch, kept until another epoch is planned."""
        if self._plan[0] != epoch:
            self._plan = epoch, self.interactions.plan(epoch)
        return self._plan[1]

    def batches(self, epoch: int, start: int = 0, rank: int = 0, world_size: int = 1) -> Iterator[HistoryBatch]:
        """Yield the batches of an epoch that belong to one process."""
        plan = self.plan(epoch)
        for number in range(start + rank, len(plan), world_size):
            yield self.interactions.batch(epoch, number, plan[number])

    def steps_per_epoch(self, world_size: int = 1) -> int:
        """Return the number of batches per epoch, of the process that gets the most."""
        return -(-len(self.plan(1)) // world_size)

    def split_batch(self, batch: HistoryBatch, n_parts: int) -> list[HistoryBatch]:
        """Split consecutive entries so that each part attends to about as many items."""
        work = (batch.item_bounds.diff() * batch.target_bounds.diff()).cumsum(0)
        marks = work[-1] * torch.arange(1, n_parts) / n_parts
        cuts = [0, *torch.searchsorted(work, marks).add(1).tolist(), batch.entries]
        parts = [batch.slice_entries(first, last) for first, last in pairwise(cuts) if first < last]
        return parts if len(parts) > 1 else [batch]

    def loss(self, model: Recommender, batch: HistoryBatch) -> Loss:
        """Return the summed binary cross-entropy of a batch."""
        return Loss(model.loss(batch), len(batch.targets))

    @torch.inference_mode()
    def validate(self, model: Recommender | Popularity) -> Validation:
        """Return the log loss of held-out items and their negatives, ranking metrics, samples and warnings."""
        threads = torch.get_num_threads()
        ranking = rank_held_out(model, self.histories, self.valid, threads)
        metrics: dict[str, float] = {} if isinstance(model, Popularity) else {"loss": ranking.loss}
        for name in self.metrics:
            ranks = ranking.ranks
            if parse_ranking_metric(name).all_items:
                ranks = rank_held_out(model, self.histories, self.valid, threads, all_items=True).ranks
            metrics[name] = ranking_metric(name, ranks, "sampled").value
        return Validation(metrics, self._samples(ranking.ranks), self._attention_warnings(model))

    def _samples(self, ranks: Ranks) -> list[Sample]:
        samples = []
        for index in range(min(N_SAMPLES, len(self.valid))):
            history = self.histories.items_of(int(self.valid.users[index]))
            names = ", ".join(self.catalog.name(item) for item in islice(history.tolist(), N_LISTED))
            rank = int(ranks.above[index] + ranks.tied[index]) + 1
            samples.append(
                Sample(
                    f"{len(history)} items: {names}{', …' if len(history) > N_LISTED else ''}",
                    self.catalog.name(int(self.valid.items[index])),
                    f"rank {rank} of {1 + len(self.valid.negatives[index])}",
                )
            )
        return samples

    def _attention_warnings(self, model: Recommender | Popularity) -> list[str]:
        if isinstance(model, Popularity) or model.attention is None:
            return []
        if self.recipe.model.attention.placement == "uniform":
            return []
        site = model.alignment_site
        hooks = Hooks(Detail.WEIGHTS, frozenset({site}))
        weights = []
        for index in range(min(N_MONITORED, len(self.valid))):
            history = torch.from_numpy(self.histories.items_of(int(self.valid.users[index])))
            candidates = torch.from_numpy(np.append(self.valid.negatives[index], self.valid.items[index]))
            attention = model.score_items(history, candidates, hooks).attentions[site]
            assert attention.weights is not None
            weights.append(attention.weights[0].float().mean(dim=1).numpy())
        return attention_warnings(site, weights)


def _validation_metrics(metric: str) -> tuple[str, ...]:
    """Return the names of the metrics to validate with, in addition to the loss."""
    if metric in ("loss", *DEFAULT_METRICS):
        return DEFAULT_METRICS
    try:
        parse_ranking_metric(metric)
    except DataError as error:
        raise TrainingError(f"training.metric = {error}; or loss") from None
    return (*DEFAULT_METRICS, metric)

"""Histories in, items out: what joins users and items, a recommender, ranking and its measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn.functional import softplus

from heedful.attention import Detail, Watch
from heedful.config import DecodingConfig, Recipe
from heedful.data.catalogue import FILE, Catalogue
from heedful.data.histories import Histories, HistoryBatch, Ints, Lessons, Slot, batch_of
from heedful.data.paths import locate_folder
from heedful.data.ratings import Held, Ratings, open_ratings
from heedful.errors import DataError, ModelError, TrainingError
from heedful.evaluation.ranking import USUAL, Ranks, ranking, ranks, wanted
from heedful.models import Judge, Popularity, Recommender, build_recommender
from heedful.tasks.kind import Evaluated, Opened, Question, Started, search_nothing
from heedful.tasks.writing import side_by_side
from heedful.training import Loss, Validation
from heedful.training import Sample as Shown
from heedful.training.types import Ears
from heedful.training.watch import attention_warnings

if TYPE_CHECKING:
    from heedful.record import Trace
    from heedful.tasks.tracing import Wanted

SHOWN = 3  # samples at each validation
WATCHED = 32  # validation users whose attention is looked at
LISTED = 4  # items of a history that a sample names
ROWS = 20_000  # items scored at once
RecommenderModel = Opened[Catalogue, Recommender | Popularity]


class Ranked(NamedTuple):
    """Where held-out items stand, and the log loss of all that was scored, an item."""

    ranks: Ranks
    loss: float


class RecommendTask:
    """What the training loop asks: batches, a loss, and how high each user's held-out item is ranked."""

    def __init__(self, recipe: Recipe, ratings: Ratings) -> None:
        training = recipe.training
        self.recipe, self.known = recipe, ratings.catalogue
        self.figures = _figures(training.metric)
        held = ratings.held["valid"]
        if not len(held):
            raise DataError("nothing to validate on: no user has items enough for one to be held out")
        self.histories = self.known.histories.without(held.users, held.items)
        self.valid = held.first(training.validate_pairs)
        positives = training.batch_tokens // (1 + training.negatives)
        reads = recipe.model.encoder.kind == "transformer" and recipe.model.recommender
        self.lessons = Lessons(
            self.histories,
            len(self.known.items),
            positives,
            training.negatives,
            training.seed,
            groups=reads.groups if reads else 0,
        )
        self._plan: tuple[int, list[list[Slot]]] = (0, [])

    def plan(self, epoch: int) -> list[list[Slot]]:
        if self._plan[0] != epoch:
            self._plan = epoch, self.lessons.plan(epoch)
        return self._plan[1]

    def batches(self, epoch: int, start: int = 0, rank: int = 0, world: int = 1) -> Iterator[HistoryBatch]:
        plan = self.plan(epoch)
        for number in range(start + rank, len(plan), world):
            yield self.lessons.batch(epoch, number, plan[number])

    def steps_per_epoch(self, world: int = 1) -> int:
        return -(-len(self.plan(1)) // world)

    def parts(self, batch: HistoryBatch, count: int) -> list[HistoryBatch]:
        """Entries one after the other, so that each part has about as many looks as the others."""
        work = (batch.bounds.diff() * batch.cuts.diff()).cumsum(0)
        marks = work[-1] * torch.arange(1, count) / count
        cuts = [0, *torch.searchsorted(work, marks).add(1).tolist(), batch.entries]
        parts = [batch.part(first, last) for first, last in pairwise(cuts) if first < last]
        return parts if len(parts) > 1 else [batch]

    def loss(self, model: Recommender, batch: HistoryBatch) -> Loss:
        return Loss(model.loss(batch), len(batch.targets))

    @torch.inference_mode()
    def validate(self, model: Recommender | Popularity) -> Validation:
        """Log loss of held-out items and what they are ranked among; hit rate, NDCG and the chosen metric."""
        threads = torch.get_num_threads()
        among = "sampled"
        found = ranked(model, self.histories, self.valid, threads)
        figures: dict[str, float] = {} if isinstance(model, Popularity) else {"loss": found.loss}
        for name in self.figures:
            place = found.ranks
            if wanted(name).everything:
                place = ranked(model, self.histories, self.valid, threads, everything=True).ranks
            figures[name] = ranking(name, place, among).value
        return Validation(figures, self._samples(found.ranks), self._oddities(model))

    def _samples(self, found: Ranks) -> list[Shown]:
        shown = []
        for at in range(min(SHOWN, len(self.valid))):
            history = self.histories.of(int(self.valid.users[at]))
            names = ", ".join(self.known.name(item) for item in islice(history.tolist(), LISTED))
            place = int(found.above[at] + found.beside[at]) + 1
            shown.append(
                Shown(
                    f"{len(history)} items: {names}{', …' if len(history) > LISTED else ''}",
                    self.known.name(int(self.valid.items[at])),
                    f"place {place} of {1 + len(self.valid.others[at])}",
                )
            )
        return shown

    def _oddities(self, model: Recommender | Popularity) -> list[str]:
        if isinstance(model, Popularity) or model.attention is None:
            return []
        if self.recipe.model.attention.placement == "uniform":
            return []
        watch = Watch(Detail.WEIGHTS, frozenset({model.alignment}))
        weights = []
        for at in range(min(WATCHED, len(self.valid))):
            history = self.histories.of(int(self.valid.users[at]))
            asked = np.append(self.valid.others[at], self.valid.items[at])
            look = model.judge(torch.from_numpy(history), torch.from_numpy(asked), watch).looks[
                model.alignment
            ]
            assert look.weights is not None
            weights.append(look.weights[0].float().mean(dim=1).numpy())
        return attention_warnings(model.alignment, weights)


def _figures(metric: str) -> tuple[str, ...]:
    """What a validation measures beside the loss."""
    if metric in ("loss", *USUAL):
        return USUAL
    try:
        wanted(metric)
    except DataError as error:
        raise TrainingError(f"training.metric = {error}; or loss") from None
    return (*USUAL, metric)


@torch.inference_mode()
def scored(
    model: Judge, histories: Sequence[Ints], targets: Sequence[Ints], threads: int = 1
) -> npt.NDArray[np.float32]:
    """The scores of every entry's targets, one entry after the other."""
    sizes = np.array([len(row) for row in targets])
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    found = np.empty(bounds[-1], np.float32)
    parts = np.flatnonzero(np.diff(bounds[:-1] // ROWS, prepend=-1)).tolist()  # where another piece begins
    ends = [*parts[1:], len(sizes)]

    def one(at: int) -> None:
        first, last = parts[at], ends[at]
        batch = batch_of(histories[first:last], targets[first:last])
        with torch.inference_mode():
            found[bounds[first] : bounds[last]] = model.logits(batch).float().numpy()

    side_by_side(one, range(len(parts)), threads)
    return found


def ranked(
    model: Judge, histories: Histories, held: Held, threads: int = 1, everything: bool = False
) -> Ranked:
    """Rank each held-out item among those given with it, or among everything its user has not taken."""
    users, items = held.users.tolist(), held.items.tolist()
    mine = [histories.of(user) for user in users]
    others = held.others
    if everything:
        count = 1 + max(int(histories.items.max(initial=0)), *(int(row.max()) for row in held.others))
        others = [_strange(count, history, item) for history, item in zip(mine, items, strict=True)]
    targets = [np.append(item, row) for item, row in zip(items, others, strict=True)]
    scores = scored(model, mine, targets, threads)
    sizes = np.array([len(row) for row in targets])
    labels = np.zeros(len(scores), np.float32)
    labels[np.cumsum(sizes) - sizes] = 1.0
    logits = torch.from_numpy(scores)
    loss = float((softplus(logits) - torch.from_numpy(labels) * logits).mean())
    return Ranked(ranks(scores, sizes), loss)


def _strange(count: int, history: Ints, item: int) -> Ints:
    strange = np.ones(count, bool)
    strange[history] = strange[item] = False
    return np.flatnonzero(strange)


class RecommendKind:
    files = (FILE,)

    def load(self, folder: Path) -> Catalogue:
        return Catalogue.load(folder)

    def build(self, recipe: Recipe, words: Catalogue) -> Recommender | Popularity:
        counts = torch.from_numpy(words.histories.counts(len(words.items))).float()
        return build_recommender(recipe.model, counts)

    def start(self, recipe: Recipe, base: Path, words: Catalogue | None, ears: Ears) -> Started:
        ratings = open_ratings(recipe.data, base)
        known = ratings.catalogue
        if words is not None and words.items != known.items:
            raise TrainingError("the items are not those that the training began with: the data has changed")
        task = RecommendTask(recipe, ratings)
        facts = (
            f"{len(known.users):,} users",
            f"{len(known.items):,} items",
            f"{len(known.histories.items):,} interactions",
            f"{len(task.valid):,} users to validate on",
        )
        started = Started(task, known, facts, ratings.notes)
        new = words is None and recipe.training.start_from
        return started._replace(prepare=_begun_with(recipe, base, known)) if new else started

    def tested(self, recipe: Recipe, base: Path) -> bool:
        return True  # where no file says what is held out, an item of each user is

    def evaluate(self, folders: Sequence[Path], asked: Question) -> Evaluated:
        from heedful.tasks.recommend_evaluate import evaluated

        return evaluated(folders, asked)

    def trace(self, opened: RecommenderModel, wanted: Wanted, how: DecodingConfig) -> Trace:
        from heedful.tasks.recommend_trace import traced

        search_nothing(opened, how)
        return traced(opened, wanted)


def _begun_with(recipe: Recipe, base: Path, known: Catalogue) -> Callable[[nn.Module], Sequence[str]]:
    """Puts another model's item vectors into a new one."""
    from heedful.tasks.folder import open_model

    folder = locate_folder(recipe.training.start_from, base)
    other: RecommenderModel = open_model(folder)
    source = other.model
    if not isinstance(source, Recommender):
        raise ModelError(f"{folder}: has no item vectors to begin with; train a model such as fism first")
    if other.words.items != known.items:
        raise ModelError(f"{folder}: was trained on other items, so its vectors cannot serve")

    def prepare(model: nn.Module) -> Sequence[str]:
        if not isinstance(model, Recommender):
            raise ModelError(f"training.start_from: {recipe.model.preset} has no item vectors")
        mine, theirs = model.target.embedding_dim, source.target.embedding_dim
        if mine != theirs:
            raise ModelError(f"{folder}: its vectors have width {theirs}, but model.embedding = {mine}")
        with torch.no_grad():
            for name in ("target.weight", "taken.weight", "bias"):
                model.get_parameter(name).copy_(source.get_parameter(name))
        return [f"the item vectors of {other.name}"]

    return prepare


KIND = RecommendKind()

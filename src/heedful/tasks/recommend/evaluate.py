"""`heedful evaluate` of recommenders: the ranks of held-out items, by length of the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from heedful.attention import Detail, Hooks
from heedful.config import RatingsConfig
from heedful.data.histories import Histories, Ints
from heedful.data.ratings import HeldOut, open_ratings, read_held_out
from heedful.errors import DataError, ModelError, nearest
from heedful.metrics.ranking import DEFAULT_METRICS, parse_ranking_metric, ranking_state
from heedful.metrics.significance import Comparison, compare_states
from heedful.metrics.state import Metric, MetricState
from heedful.parallel import available_cpus
from heedful.tasks.base import EvaluationRequest, Table
from heedful.tasks.limits import check_finite
from heedful.tasks.model_folder import load_model
from heedful.tasks.recommend.assets import LoadedRecommender
from heedful.tasks.recommend.score import rank_held_out

MAIN_METRIC = "ndcg@10"  # of comparisons
N_BINS = 4  # groups of users by the length of their histories
ALL_ITEMS = "all items"


class LengthBin(NamedTuple):
    """The metrics of users whose histories have from `low` to `high` items."""

    low: int
    high: int
    users: int
    metrics: list[Metric]


class RecommendEvaluation(NamedTuple):
    """The metrics of a recommender on some users."""

    name: str
    metrics: list[Metric]
    main: MetricState
    by_length: list[LengthBin]
    ties: int  # users whose held-out item has the same score as another
    gold_mass: float | None  # weight on the gold items of the histories, where they are known
    unit: str = "users"

    @property
    def items(self) -> int:
        return len(self.main.rows)

    def tables(self) -> list[Table]:
        """Return the metrics by length of the history, ties, and the weight on gold items of a world."""
        columns = ("history length", "users", *(metric.name for metric in self.by_length[0].metrics))
        rows = [
            (f"{group.low}-{group.high}", f"{group.users:,}", *(f"{metric.value:.2f}" for metric in group.metrics))
            for group in self.by_length
        ]
        totals = [("users with a tie", f"{self.ties:,}")]
        if self.gold_mass is not None:
            totals.append(("weight on gold items of the history", f"{self.gold_mass:.1%}"))
        return [Table(columns, rows), Table(("", ""), totals)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {
            "metrics": [metric.to_dict() for metric in self.metrics],
            "by_history_length": [
                {**group._asdict(), "metrics": [metric.to_dict() for metric in group.metrics]}
                for group in self.by_length
            ],
            "ties": self.ties,
            "gold": self.gold_mass,
        }

    def compare_to(self, other: RecommendEvaluation) -> Comparison:
        """Compare two models by a paired bootstrap over the users."""
        if self.items != other.items:
            raise DataError(f"{self.name} was evaluated on {self.items:,} users, {other.name} on {other.items:,}")
        return compare_states(self.main, other.main)


class RankingTest(NamedTuple):
    """Held-out items, the candidates they are ranked among, and the gold items of histories where they are known."""

    held_out: HeldOut
    candidates: str  # for the signature: "99 sampled"
    gold: Mapping[int, Ints] = {}


def evaluation_users(loaded: LoadedRecommender, files: Sequence[str], split: str) -> RankingTest:
    """Return the held-out items of the given files, or of a split of the model's recipe."""
    data = loaded.recipe.data
    splits = {"valid": data.valid, "test": data.test}
    if not files and split not in splits:
        raise DataError(f'"{split}": no items are held out of it; {nearest(split, splits)}; or give --data')
    paths = files or splits[split]
    if paths:
        held_out = read_held_out(paths, data.ratings or RatingsConfig(), loaded.assets)
        return RankingTest(held_out, _describe_candidates(held_out, "given" if len(paths) > 1 else "sampled"))
    ratings = open_ratings(data, Path())
    if ratings.catalog.items != loaded.assets.items or ratings.catalog.users != loaded.assets.users:
        raise DataError(f"the data is not what {loaded.name} was trained on: users or items differ")
    held_out = ratings.held_out[split]
    candidates = _describe_candidates(held_out, "given" if data.world else "sampled")
    return RankingTest(held_out, candidates, ratings.gold)


def _describe_candidates(held_out: HeldOut, origin: str) -> str:
    sizes = {len(row) for row in held_out.negatives}
    return f"{min(sizes)} {origin}" if len(sizes) == 1 else f"{min(sizes)}-{max(sizes)} {origin}"


def evaluate_models(folders: Sequence[Path], request: EvaluationRequest) -> RecommendEvaluation:
    """Evaluate one recommender on the requested held-out items."""
    if len(folders) > 1:
        raise ModelError(f"an ensemble of recommenders is not supported: give one model, got {len(folders)}")
    if request.gallery is not None or request.int8 or request.decoding.model_fields_set:
        raise DataError("--beam, --length-penalty, --int8, --gallery: a recommender ranks items and generates no text")
    names = list(request.metrics) or list(DEFAULT_METRICS)
    over_all = {name: parse_ranking_metric(name).all_items for name in (*names, MAIN_METRIC)}
    loaded: LoadedRecommender = load_model(folders[0])
    test = evaluation_users(loaded, request.data, request.split)
    histories = loaded.assets.histories.without(test.held_out.users, test.held_out.items)
    threads = request.threads or available_cpus()
    results = {
        all_items: rank_held_out(loaded.model, histories, test.held_out, threads, all_items)
        for all_items in {False, *over_all.values()}
    }
    check_finite([result.loss for result in results.values()], "the held-out items", loaded.name)
    ranks = {all_items: result.ranks for all_items, result in results.items()}

    def state(name: str) -> MetricState:
        return ranking_state(name, ranks[over_all[name]], ALL_ITEMS if over_all[name] else test.candidates)

    states = [state(name) for name in names]
    return RecommendEvaluation(
        loaded.name,
        [metric_state.metric() for metric_state in states],
        state(MAIN_METRIC),
        _by_length(histories.lengths[test.held_out.users], states),
        int((ranks[False].tied > 0).sum()),
        _gold_mass(loaded, histories, test) if test.gold and loaded.model.alignment_site else None,
    )


def _by_length(lengths: Ints, states: Sequence[MetricState]) -> list[LengthBin]:
    """Return the metrics of groups of users of about equal size, by the length of their histories."""
    edges = np.unique(np.quantile(lengths, np.linspace(0, 1, N_BINS + 1)).astype(np.int64))
    edges = np.append(edges[:-1] if len(edges) > 1 else edges, edges[-1] + 1)
    bins = []
    for low, high in pairwise(edges.tolist()):
        rows = np.flatnonzero((lengths >= low) & (lengths < high))
        parts = [replace(state, rows=state.rows[rows], signature=f"users:{len(rows):,}") for state in states]
        bins.append(LengthBin(low, high - 1, len(rows), [part.metric() for part in parts]))
    return bins


@torch.inference_mode()
def _gold_mass(loaded: LoadedRecommender, histories: Histories, test: RankingTest) -> float:
    """Return the mean share of the weight for a held-out item that lies on its gold items."""
    model = loaded.model
    site = str(model.alignment_site)
    hooks = Hooks(Detail.WEIGHTS, frozenset({site}))
    shares = []
    for user, item in zip(test.held_out.users.tolist(), test.held_out.items.tolist(), strict=True):
        history = histories.items_of(user)
        attention = model.score_items(torch.from_numpy(history), torch.tensor([item]), hooks).attentions[site]
        assert attention.weights is not None
        weights = attention.weights[0, 0].mean(dim=0).numpy()
        shares.append(weights[np.isin(history, test.gold[user])].sum() / weights.sum())
    return float(np.mean(shares))

"""`heedful evaluate` of recommenders: how high held-out items are ranked, and for whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from heedful.attention import Detail, Watch
from heedful.config import RatingsConfig
from heedful.data.histories import Histories, Ints
from heedful.data.ratings import Held, open_ratings, read_held
from heedful.errors import DataError, ModelError, nearest
from heedful.evaluation.ranking import USUAL, Ranks, ranking_tally, wanted
from heedful.evaluation.significance import Comparison, compared
from heedful.evaluation.tally import Metric, Tally
from heedful.tasks.folder import open_model
from heedful.tasks.kind import Question, Table
from heedful.tasks.recommend import RecommenderModel, ranked
from heedful.tasks.use import processors

MAIN = "ndcg@10"  # what two models are compared by
PARTS = 4  # of users, by the length of their histories
ALL = "all items"


class RecommendEvaluation(NamedTuple):
    """What was measured on some users."""

    name: str
    metrics: list[Metric]
    main: Tally
    by_length: list[tuple[int, int, list[Metric]]]  # from, to; of the users between
    ties: int  # users whose item has exactly the score of another
    gold: float | None  # mass on the right items of a history, where they are known
    unit: str = "users"

    @property
    def items(self) -> int:
        return len(self.main.rows)

    def tables(self) -> list[Table]:
        """For whom it is good; how many ties there are; in a world, whether it looks at the right items."""
        heads = ("items of a history", "users", *(metric.name for metric in self.by_length[0][2]))
        rows = [
            (f"{low}-{high}", _users(metrics), *(f"{metric.value:.2f}" for metric in metrics))
            for low, high, metrics in self.by_length
        ]
        more = [("users with a tie", f"{self.ties:,}")]
        if self.gold is not None:
            more.append(("weight on the right items of a history", f"{self.gold:.1%}"))
        return [Table(heads, rows), Table(("", ""), more)]

    def plain(self) -> dict[str, Any]:
        lengths = [
            {"low": low, "high": high, "metrics": [m._asdict() for m in metrics]}
            for low, high, metrics in self.by_length
        ]
        found = {"metrics": [m._asdict() for m in self.metrics], "by_history_length": lengths}
        return {**found, "ties": self.ties, "gold": self.gold}

    def against(self, other: RecommendEvaluation) -> Comparison:
        """Paired bootstrap over the users."""
        if self.items != other.items:
            raise DataError(
                f"{self.name} was measured on {self.items:,} users, {other.name} on {other.items:,}"
            )
        return compared((self.main, other.main))


def _users(metrics: Sequence[Metric]) -> str:
    return metrics[0].signature.partition("users:")[2].partition("|")[0]


class Exam(NamedTuple):
    """What is ranked: held-out items, among what, and the right items of histories where they are known."""

    held: Held
    among: str
    gold: Mapping[int, Ints] = {}


def exam_of(opened: RecommenderModel, files: Sequence[str], split: str) -> Exam:
    """The files given, or a split of the model's recipe."""
    data = opened.recipe.data
    settings = data.ratings or RatingsConfig()
    named = {"valid": data.valid, "test": data.test}
    if not files and split not in named:
        raise DataError(f'"{split}": histories are for training; {nearest(split, named)}; or give --data')
    chosen = files or named[split]
    if chosen:
        held = read_held(chosen, settings, opened.words)
        return Exam(held, _among(held, "given" if len(chosen) > 1 else "sampled"))
    ratings = open_ratings(data, Path())
    if ratings.catalogue.items != opened.words.items or ratings.catalogue.users != opened.words.users:
        raise DataError(f"the data is not what {opened.name} was trained on: users or items differ")
    held = ratings.held[split]
    return Exam(held, _among(held, "given" if data.world else "sampled"), ratings.gold)


def _among(held: Held, how: str) -> str:
    sizes = {len(row) for row in held.others}
    return f"{min(sizes)} {how}" if len(sizes) == 1 else f"{min(sizes)}-{max(sizes)} {how}"


def evaluated(folders: Sequence[Path], asked: Question) -> RecommendEvaluation:
    """One model on the held-out items asked for."""
    if len(folders) > 1:
        raise ModelError(f"recommenders do not join: give one model, not {len(folders)}")
    if asked.gallery is not None or asked.int8 or asked.decoding:
        raise DataError(
            "--beam, --length-penalty, --int8, --gallery: a recommender writes nothing; it ranks items"
        )
    names = list(asked.metrics) or list(USUAL)
    for name in names:
        wanted(name)
    opened: RecommenderModel = open_model(folders[0])
    exam = exam_of(opened, asked.data, asked.split)
    histories = opened.words.histories.without(exam.held.users, exam.held.items)
    threads = asked.threads or processors()
    found: dict[bool, Ranks] = {}
    for everything in {False, *(wanted(name).everything for name in names)}:
        found[everything] = ranked(opened.model, histories, exam.held, threads, everything).ranks

    def tally(name: str) -> Tally:
        everything = wanted(name).everything
        return ranking_tally(name, found[everything], ALL if everything else exam.among)

    return RecommendEvaluation(
        opened.name,
        [tally(name).metric() for name in names],
        tally(MAIN),
        _by_length(histories.lengths[exam.held.users], [tally(name) for name in names]),
        int((found[False].beside > 0).sum()),
        _mass(opened, histories, exam) if exam.gold and opened.model.alignment else None,
    )


def _by_length(lengths: Ints, tallies: Sequence[Tally]) -> list[tuple[int, int, list[Metric]]]:
    """Users in parts of about one size, by the length of their histories."""
    edges = np.unique(np.quantile(lengths, np.linspace(0, 1, PARTS + 1)).astype(np.int64))
    edges = np.append(edges[:-1] if len(edges) > 1 else edges, edges[-1] + 1)
    found = []
    for low, high in pairwise(edges.tolist()):
        some = np.flatnonzero((lengths >= low) & (lengths < high))
        parts = [Tally(t.name, t.rows[some], t.score, f"users:{len(some):,}") for t in tallies]
        found.append((low, high - 1, [part.metric() for part in parts]))
    return found


@torch.inference_mode()
def _mass(opened: RecommenderModel, histories: Histories, exam: Exam) -> float:
    """The mean share of the weight, for a held-out item, that lies on the reasons for it."""
    model = opened.model
    site = str(model.alignment)
    watch = Watch(Detail.WEIGHTS, frozenset({site}))
    shares = []
    for user, item in zip(exam.held.users.tolist(), exam.held.items.tolist(), strict=True):
        history = histories.of(user)
        look = model.judge(torch.from_numpy(history), torch.tensor([item]), watch).looks[site]
        assert look.weights is not None
        weights = look.weights[0, 0].mean(dim=0).numpy()
        shares.append(weights[np.isin(history, exam.gold[user])].sum() / weights.sum())
    return float(np.mean(shares))

"""What `heedful measure` says of recommenders: how a history is weighed for the item that was held out.

A decision is whether the held-out item is taken; weights that need not sum to 1 keep their sum when they are
changed. The quality beside it is the hit rate among the items given, as `heedful evaluate` has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from heedful.attention import Detail, Look, Override, Watch
from heedful.data.histories import Ints
from heedful.errors import DataError, TraceError
from heedful.evaluation.ranking import ranking, ranks
from heedful.models import Recommender
from heedful.record import Links, entropy_ratio
from heedful.studies.honesty import evened, shuffled
from heedful.studies.measure_label import Looked as Weighed
from heedful.studies.measure_label import against_gold
from heedful.studies.probe import Decision
from heedful.tasks.recommend import RecommenderModel, scored
from heedful.tasks.recommend_evaluate import exam_of

END = -1  # stands where texts have their end token; it is never read
NUMBERS = 2_000_000  # weights of one probe's longest test
METRIC = "hr@10"


class Case(NamedTuple):
    """A user's history, the item that was held out, what it is ranked among; the reasons for it, if known."""

    history: Ints
    item: int
    others: Ints
    links: list[tuple[int, int]] | None


def cases(opened: RecommenderModel, data: Sequence[str], split: str) -> list[Case]:
    exam = exam_of(opened, data, split)
    histories = opened.words.histories.without(exam.held.users, exam.held.items)
    found = []
    for user, item, others in zip(
        exam.held.users.tolist(), exam.held.items.tolist(), exam.held.others, strict=True
    ):
        history = histories.of(user)
        links = None
        if exam.gold:
            links = [(int(at), 0) for at in np.flatnonzero(np.isin(history, exam.gold[user]))]
        if len(history):
            found.append(Case(history, item, others, links))
    return found


def _judged(model: Recommender, case: Case, watch: Watch) -> tuple[Look, Tensor]:
    """The look for the held-out item, and its score."""
    judged = model.judge(torch.from_numpy(case.history), torch.tensor([case.item]), watch)
    return judged.looks[model.alignment], judged.scores


@dataclass(frozen=True)
class HistoryProbe:
    """Some users, and whether each takes the held-out item. Weights are shares of their sum."""

    model: Recommender
    cases: list[Case]
    weights: Tensor
    mass: Tensor
    open: Tensor
    p: Tensor
    sentences: list[int]
    step: int = 0

    @property
    def valid(self) -> Tensor:
        return self.open

    @property
    def shares(self) -> Tensor:
        return self.weights.mean(dim=1)

    def outcome(self, weights: Tensor) -> Tensor:
        """What becomes likely under other weights, gradients led back to them."""
        return torch.stack([self._one(row, weights[row]) for row in range(len(self.cases))])

    def _one(self, row: int, weights: Tensor) -> Tensor:
        case = self.cases[row]
        own = weights[..., : len(case.history)] * self.mass[row]

        def change(site: str, _: Look, __: Tensor) -> Override | None:
            return Override(own[None]) if site == self.model.alignment else None

        targets = torch.full((len(weights),), case.item)
        judged = self.model.judge(torch.from_numpy(case.history), targets, Watch(Detail.NONE, edit=change))
        return _either(judged.scores)


def _either(scores: Tensor) -> Tensor:
    """Taken, or not: (row, 2)."""
    chance = scores.sigmoid()
    return torch.stack([chance, 1 - chance], dim=-1)


class HistorySubject:
    """A model and the held-out items of some users."""

    decision, quality, things, probed = "chance of the item", METRIC.upper(), "items of the history", True

    def __init__(self, opened: RecommenderModel, cases: Sequence[Case]) -> None:
        self.model, self.cases = _weighing(opened), cases
        self.sources = [[*case.history.tolist(), END] for case in cases]

    def chosen(self, each: int, seed: int) -> list[set[int]]:
        return [{0} for _ in self.cases]

    def probes(self, steps: Sequence[set[int]]) -> Iterator[HistoryProbe]:
        order = sorted((i for i, mine in enumerate(steps) if mine), key=lambda i: len(self.cases[i].history))
        while order:
            longest = len(self.cases[order[-1]].history)
            count = max(1, NUMBERS // longest**2)
            rows, order = order[-count:], order[:-count]
            yield self._probe(rows)

    def _probe(self, rows: list[int]) -> HistoryProbe:
        some = [self.cases[row] for row in rows]
        watch = Watch(Detail.WEIGHTS, frozenset({self.model.alignment}))
        with torch.no_grad():
            looks, scores = zip(*(_judged(self.model, case, watch) for case in some), strict=True)
        found = [_weights(look)[0, 0] for look in looks]  # (head, key)
        mass = [weights.sum(dim=-1, keepdim=True) for weights in found]
        most = max(len(case.history) for case in some)
        weights = torch.zeros(len(some), found[0].shape[0], most)
        open_ = torch.zeros(len(some), most, dtype=torch.bool)
        for row, (mine, total) in enumerate(zip(found, mass, strict=True)):
            count = mine.shape[-1]
            weights[row, :, :count] = mine / total.clamp_min(1e-12)
            open_[row, :count] = True
        return HistoryProbe(
            self.model, some, weights, torch.stack(mass), open_, _either(torch.cat(scores)), rows
        )

    def again(self, decisions: Sequence[Decision], sources: Sequence[Sequence[int]]) -> Tensor:
        histories = [np.array([item for item in source if item != END], dtype=np.int64) for source in sources]
        targets = [np.array([self.cases[case].item], dtype=np.int64) for case, _ in decisions]
        return _either(torch.from_numpy(scored(self.model, histories, targets)))

    def saliency(self, decisions: Sequence[Decision]) -> list[Tensor]:
        return [_slope(self.model, self.cases[case]) for case, _ in decisions]

    def outputs(self, seed: int) -> dict[str, float]:
        """Hit rate when all weights are uniform, or permuted, each look's sum as it was."""
        rng = torch.Generator().manual_seed(seed)

        found = {"as it is": self._hits(None)}
        return {
            **found,
            "uniform": self._hits(evened),
            "permute": self._hits(lambda weights: shuffled(weights, rng)),
        }

    @torch.no_grad()
    def _hits(self, made: Callable[[Tensor], Tensor] | None) -> float:
        def change(site: str, look: Look, _: Tensor) -> Override | None:
            assert made is not None
            return Override(made(_weights(look))) if site == self.model.alignment else None

        watch = Watch(Detail.NONE, edit=None if made is None else change)
        scores = []
        for case in self.cases:
            targets = torch.from_numpy(np.append(case.item, case.others))
            scores.append(self.model.judge(torch.from_numpy(case.history), targets, watch).scores.numpy())
        sizes = np.array([len(mine) for mine in scores])
        return ranking(METRIC, ranks(np.concatenate(scores), sizes), "given").value


def _weighing(opened: RecommenderModel) -> Recommender:
    """The model, if it weighs anything."""
    model = opened.model
    if not isinstance(model, Recommender) or model.attention is None:
        raise TraceError(f"{opened.name} weighs all items of a history alike: there is nothing to measure")
    return model


def _weights(look: Look) -> Tensor:
    assert look.weights is not None
    return look.weights


def _slope(model: Recommender, case: Case) -> Tensor:
    """`|sum_d x_jd dP/dx_jd|` of every history item, weights held fast, summing to 1."""
    vectors: list[Tensor] = []

    def hear(_: nn.Module, __: object, out: Tensor) -> Tensor:
        vectors.append(out.detach().requires_grad_())
        return vectors[0]

    def held(site: str, look: Look, _: Tensor) -> Override | None:
        return Override(_weights(look).detach()) if site == model.alignment else None

    handle = model.taken.register_forward_hook(hear)
    try:
        with torch.enable_grad():
            _, scores = _judged(model, case, Watch(Detail.NONE, edit=held))
            (slope,) = torch.autograd.grad(scores.sigmoid().sum(), vectors[0])
    finally:
        handle.remove()
    importance = (slope * vectors[0].detach()).sum(dim=-1).abs()
    return importance / importance.sum().clamp_min(1e-30)


@torch.no_grad()
def weighed(model: Recommender, cases: Sequence[Case]) -> list[Weighed]:
    """The weights of each history for the held-out item, the mean over heads."""
    watch = Watch(Detail.WEIGHTS, frozenset({model.alignment}))
    found = []
    for case in cases:
        weights = _weights(_judged(model, case, watch)[0])[0, 0].mean(dim=0).double().numpy()
        found.append(Weighed(weights, list(range(len(weights)))))
    return found


class HistoryWay:
    """Histories in, items out."""

    unit = "users"

    def items(self, opened: RecommenderModel, data: Sequence[str], split: str) -> list[Case]:
        return cases(opened, data, split)

    def gold(self, path: Path, base: int) -> list[Links]:
        raise DataError("--gold: the reasons for an item are known in the world of tastes alone")

    def looks(
        self, opened: RecommenderModel, items: Sequence[Case], gold: Sequence[Links] | None
    ) -> dict[str, Any]:
        looked = weighed(_weighing(opened), items)
        shares = [Weighed(one.weights / max(one.weights.sum(), 1e-12), one.words) for one in looked]
        found: dict[str, Any] = {
            "looks": {
                "entropy ratio": float(np.mean([entropy_ratio(one.weights[None])[0] for one in shares])),
                "largest share of a look": float(np.mean([one.weights.max() for one in shares])),
                "sum of a look": float(np.mean([one.weights.sum() for one in looked])),
            }
        }
        if gold is not None:
            found["gold"] = against_gold(shares, gold)
        return found

    def subject(self, opened: RecommenderModel, items: Sequence[Case]) -> HistorySubject:
        return HistorySubject(opened, items)


WAY = HistoryWay()

"""`heedful measure` of recommenders: the weights of a history for the held-out item, and their effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.attention import AttentionOutput, Detail, Hooks, Override
from heedful.errors import DataError, TraceError
from heedful.metrics.ranking import compute_ranks, ranking_metric
from heedful.models import Recommender
from heedful.tasks.gold_words import PositionWeights, score_gold_words
from heedful.tasks.probes import Decision, permute_weights, uniform_weights
from heedful.tasks.recommend.assets import LoadedRecommender
from heedful.tasks.recommend.evaluate import evaluation_users
from heedful.tasks.recommend.probes import (
    HistoryProbe,
    RankingCase,
    both_probabilities,
    get_weights,
    history_probes,
    history_saliency,
    score_case,
)
from heedful.tasks.recommend.score import score_items
from heedful.trace.schema import Links, entropy_ratio

END = -1  # stands for the end token of texts; never read
METRIC = "hr@10"


def load_cases(loaded: LoadedRecommender, data: Sequence[str], split: str) -> list[RankingCase]:
    """Return the held-out items of all users with a history."""
    test = evaluation_users(loaded, data, split)
    held_out = test.held_out
    histories = loaded.assets.histories.without(held_out.users, held_out.items)
    rows = zip(held_out.users.tolist(), held_out.items.tolist(), held_out.negatives, strict=True)
    cases = []
    for user, item, negatives in rows:
        history = histories.items_of(user)
        links = None
        if test.gold:
            links = [(int(position), 0) for position in np.flatnonzero(np.isin(history, test.gold[user]))]
        if len(history):
            cases.append(RankingCase(history, item, negatives, links))
    return cases


class HistoryProbeTarget:
    """A recommender and the held-out items of some users."""

    decision_name, metric_name = "probability of the item", METRIC.upper()
    position_name, has_decisions = "items of the history", True

    def __init__(self, loaded: LoadedRecommender, cases: Sequence[RankingCase]) -> None:
        self.model, self.cases = _require_attention(loaded), cases
        self.sources = [[*case.history.tolist(), END] for case in cases]

    def sample_steps(self, per_item: int, seed: int) -> list[set[int]]:
        """Return the only step of each case: its held-out item."""
        return [{0} for _ in self.cases]

    def probes(self, steps: Sequence[set[int]]) -> Iterator[HistoryProbe]:
        return history_probes(self.model, self.cases, [i for i, item_steps in enumerate(steps) if item_steps])

    def predict_from(self, decisions: Sequence[Decision], sources: Sequence[Sequence[int]]) -> Tensor:
        histories = [np.array([item for item in source if item != END], dtype=np.int64) for source in sources]
        targets = [np.array([self.cases[case].item], dtype=np.int64) for case, _ in decisions]
        return both_probabilities(torch.from_numpy(score_items(self.model, histories, targets)))

    def saliency(self, decisions: Sequence[Decision]) -> list[Tensor]:
        return [history_saliency(self.model, self.cases[case]) for case, _ in decisions]

    def output_metrics(self, seed: int) -> dict[str, float]:
        """Return the hit rate: unchanged, and with all weights uniform or permuted, their sums kept."""
        rng = torch.Generator().manual_seed(seed)
        return {
            "unchanged": self._hit_rate(None),
            "uniform": self._hit_rate(uniform_weights),
            "permuted": self._hit_rate(lambda weights: permute_weights(weights, rng)),
        }

    @torch.no_grad()
    def _hit_rate(self, transform: Callable[[Tensor], Tensor] | None) -> float:
        def replace(site: str, attention: AttentionOutput, _: Tensor) -> Override | None:
            assert transform is not None
            return Override(transform(get_weights(attention))) if site == self.model.alignment_site else None

        hooks = Hooks(Detail.NONE, edit=None if transform is None else replace)
        scores = []
        for case in self.cases:
            targets = torch.from_numpy(np.append(case.item, case.negatives))
            scores.append(self.model.score_items(torch.from_numpy(case.history), targets, hooks).scores.numpy())
        sizes = np.array([len(row) for row in scores])
        return ranking_metric(METRIC, compute_ranks(np.concatenate(scores), sizes), "given").value


def _require_attention(loaded: LoadedRecommender) -> Recommender:
    """Return the model, if it attends to histories."""
    model = loaded.model
    if not isinstance(model, Recommender) or model.attention is None:
        raise TraceError(f"{loaded.name} weighs all items of a history equally: there is no attention to measure")
    return model


@torch.no_grad()
def case_weights(model: Recommender, cases: Sequence[RankingCase]) -> list[PositionWeights]:
    """Return the weights of each history for the held-out item."""
    hooks = Hooks(Detail.WEIGHTS, frozenset({model.alignment_site}))
    by_case = []
    for case in cases:
        weights = get_weights(score_case(model, case, hooks)[0])[0, 0].mean(dim=0).double().numpy()
        by_case.append(PositionWeights(weights, list(range(len(weights)))))
    return by_case


class RecommendationAdapter:
    """Measures the attention of recommenders over histories."""

    unit = "users"

    def load_items(self, loaded: LoadedRecommender, data: Sequence[str], split: str) -> list[RankingCase]:
        return load_cases(loaded, data, split)

    def read_gold(self, path: Path, base: int) -> list[Links]:
        raise DataError("--gold: not used for recommenders; gold items are known only for the tastes world")

    def describe_attention(
        self, loaded: LoadedRecommender, items: Sequence[RankingCase], gold: Sequence[Links] | None
    ) -> dict[str, Any]:
        by_case = case_weights(_require_attention(loaded), items)
        shares = [PositionWeights(case.weights / max(case.weights.sum(), 1e-12), case.words) for case in by_case]
        report: dict[str, Any] = {
            "attention": {
                "entropy_ratio": float(np.mean([entropy_ratio(case.weights[None])[0] for case in shares])),
                "largest_share": float(np.mean([case.weights.max() for case in shares])),
                "weight_sum": float(np.mean([case.weights.sum() for case in by_case])),
            }
        }
        if gold is not None:
            report["gold"] = score_gold_words(shares, gold)
        return report

    def make_probe_target(self, loaded: LoadedRecommender, items: Sequence[RankingCase]) -> HistoryProbeTarget:
        return HistoryProbeTarget(loaded, items)


ADAPTER = RecommendationAdapter()

"""Recommend items for a history, with the items of the history that contributed most to each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from heedful.attention import Detail, Hooks
from heedful.data.histories import Ints
from heedful.errors import DataError
from heedful.models import Popularity
from heedful.tasks.limits import check_finite
from heedful.tasks.recommend.assets import LoadedRecommender
from heedful.tasks.recommend.score import score_items

Numbers = npt.NDArray[np.float64]


class Reason(NamedTuple):
    """An item of the history: its attention weight, and the recommended item's score with it minus without it."""

    item: int  # number in the catalog
    id: str  # id in the data
    title: str
    weight: float
    effect: float

    def __repr__(self) -> str:
        return f"<{self.title!r}: weight {self.weight:.3f}, effect {self.effect:+.3f}>"


class Recommendation(NamedTuple):
    """A recommended item, its score, and the items of the history that raised it most."""

    item: int  # number in the catalog
    id: str  # id in the data
    title: str
    score: float
    reasons: Sequence[Reason]

    def __repr__(self) -> str:
        because = ", ".join(f"{reason.title!r} {reason.effect:+.3f}" for reason in self.reasons)
        return f"<{self.title!r}: score {self.score:.3f}{f', because of {because}' if because else ''}>"


def find_history(loaded: LoadedRecommender, user: str | None, titles: Sequence[str] = ()) -> Ints:
    """Return the item numbers of a known user's history, or those of the given titles or ids."""
    catalog = loaded.assets
    if user is not None and titles:
        raise DataError("give --user or --items, not both: a known user has a history")
    if user is not None:
        history = catalog.histories.items_of(catalog.find_user(user))
        if not len(history):
            raise DataError(f"user {user} has no history to recommend from")
        return history
    errors, items = [], []
    for title in titles:
        try:
            items.append(catalog.find_item(title))
        except DataError as error:
            errors.append(str(error))
    if errors:
        raise DataError("\n".join(errors))
    if not items:
        raise DataError('no history: give --user ID, or --items "Title A; Title B"')
    return np.array(list(dict.fromkeys(items)), dtype=np.int64)


def top_items(loaded: LoadedRecommender, history: Ints, top: int) -> list[tuple[int, float]]:
    """Return the items with the highest scores that are not in the history; ties in the catalog's order."""
    candidates = np.setdiff1d(np.arange(len(loaded.assets.items)), history)
    if not len(candidates):
        raise DataError("every item is in the history: nothing is left to recommend")
    scores = score_items(loaded.model, [history], [candidates])
    check_finite(scores.tolist(), f"a history of {len(history):,} items", loaded.name)
    order = np.argsort(-scores, kind="stable")[:top]
    return [(int(candidates[index]), float(scores[index])) for index in order]


class HistoryWeights(NamedTuple):
    """For one recommended item: the weight of every history item, and its contribution to the score."""

    weights: Numbers
    contributions: Numbers


@torch.inference_mode()
def weigh_history(loaded: LoadedRecommender, history: Ints, items: Sequence[int]) -> list[HistoryWeights]:
    """Return how the model weighs a history for each item, mean over heads; zeros for a popularity count."""
    model = loaded.model
    if isinstance(model, Popularity):
        zeros = np.zeros(len(history))
        return [HistoryWeights(zeros, zeros) for _ in items]
    hooks = Hooks(Detail.WEIGHTS, frozenset({model.alignment_site}))
    output = model.score_items(torch.from_numpy(history), torch.tensor(list(items)), hooks)
    by_head = output.attentions[model.alignment_site].weights
    assert by_head is not None
    weights = by_head[0].mean(dim=1)
    additive = model.attention is None or model.attention.heads is None  # an output projection mixes heads
    contributions = weights * (output.query @ output.values.T) if additive else weights
    check_finite(contributions.flatten().tolist(), f"a history of {len(history):,} items", loaded.name)
    rows = zip(weights.double().numpy(), contributions.double().numpy(), strict=True)
    return [HistoryWeights(*row) for row in rows]


def leave_one_out(loaded: LoadedRecommender, history: Ints, item: int, positions: Sequence[int]) -> list[float]:
    """Return the item's score minus its score without a history item, for each of these positions."""
    shorter = [np.delete(history, position) for position in positions]
    target = np.array([item], dtype=np.int64)
    full, *rest = score_items(loaded.model, [history, *shorter], [target] * (1 + len(positions))).tolist()
    return [full - score for score in rest]


def find_reasons(
    loaded: LoadedRecommender, history: Ints, item: int, item_weights: HistoryWeights, limit: int
) -> list[Reason]:
    """Return the history items that raise an item's score, the largest contribution first."""
    if isinstance(loaded.model, Popularity):
        return []
    order = np.argsort(-item_weights.contributions, kind="stable").tolist()
    positions = [i for i in order if history[i] != item and item_weights.contributions[i] > 0][:limit]
    effects = leave_one_out(loaded, history, item, positions)
    return [
        Reason(*_describe(loaded, int(history[i])), float(item_weights.weights[i]), effect)
        for i, effect in zip(positions, effects, strict=True)
        if effect > 0
    ]


def recommend(loaded: LoadedRecommender, history: Ints, top: int = 10, n_reasons: int = 3) -> list[Recommendation]:
    """Return the best items for a history, each with its reasons."""
    best = top_items(loaded, history, top)
    weights = weigh_history(loaded, history, [item for item, _ in best])
    recommendations = []
    for (item, score), item_weights in zip(best, weights, strict=True):
        reasons = find_reasons(loaded, history, item, item_weights, n_reasons)
        recommendations.append(Recommendation(*_describe(loaded, item), score, reasons))
    return recommendations


def _describe(loaded: LoadedRecommender, item: int) -> tuple[int, str, str]:
    return item, loaded.assets.items[item], loaded.assets.name(item)

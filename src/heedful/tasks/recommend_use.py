"""Using a recommender: whose history it is, what it recommends, and which items of it speak for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from heedful.attention import Detail, Watch
from heedful.data.histories import Ints
from heedful.errors import DataError
from heedful.models import Popularity
from heedful.tasks.recommend import RecommenderModel, scored

Numbers = npt.NDArray[np.float64]


class Reason(NamedTuple):
    """An item of a history: its weight, and the recommended item's score with it minus without it."""

    item: int
    weight: float
    effect: float


class Advice(NamedTuple):
    """A recommended item, its score, and the items that spoke for it, the strongest first."""

    item: int
    score: float
    reasons: Sequence[Reason]


def history_of(opened: RecommenderModel, user: str | None, titles: Sequence[str] = ()) -> Ints:
    """What a user took, or what somebody new says to have taken."""
    known = opened.words
    if user is not None and titles:
        raise DataError("give --user or --items, not both: a user's history is known")
    if user is not None:
        history = known.histories.of(known.user(user))
        if not len(history):
            raise DataError(f"user {user} has no history: nothing is known of what they took")
        return history
    mistakes, found = [], []
    for title in titles:
        try:
            found.append(known.item(title))
        except DataError as error:
            mistakes.append(str(error))
    if mistakes:
        raise DataError("\n".join(mistakes))
    if not found:
        raise DataError('nothing to go by: give --user ID, or --items "Title A; Title B"')
    return np.array(list(dict.fromkeys(found)), dtype=np.int64)


def best(opened: RecommenderModel, history: Ints, top: int) -> list[tuple[int, float]]:
    """The items of the highest scores that are not in the history; of equal ones the first."""
    strange = np.setdiff1d(np.arange(len(opened.words.items)), history)
    if not len(strange):
        raise DataError("every item is in the history: nothing is left to recommend")
    scores = scored(opened.model, [history], [strange])
    order = np.argsort(-scores, kind="stable")[:top]
    return [(int(strange[at]), float(scores[at])) for at in order]


class Weighed(NamedTuple):
    """Of one recommended item: every history item's weight, and what it adds to the score by itself."""

    weights: Numbers
    adds: Numbers


@torch.inference_mode()
def weighed(opened: RecommenderModel, history: Ints, items: Sequence[int]) -> list[Weighed]:
    """How a history is weighed for each of some items. Popularity weighs nothing."""
    model = opened.model
    if isinstance(model, Popularity):
        nothing = np.zeros(len(history))
        return [Weighed(nothing, nothing) for _ in items]
    watch = Watch(Detail.WEIGHTS, frozenset({model.alignment}))
    judged = model.judge(torch.from_numpy(history), torch.tensor(list(items)), watch)
    found = judged.looks[model.alignment].weights
    assert found is not None
    weights = found[0].mean(dim=1)
    plain = model.attention is None or model.attention.heads is None  # heads mix what they read
    adds = weights * (judged.query @ judged.values.T) if plain else weights
    return [Weighed(*(row.double().numpy() for row in both)) for both in zip(weights, adds, strict=True)]


def effects(opened: RecommenderModel, history: Ints, item: int, places: Sequence[int]) -> list[float]:
    """The item's score minus its score had a history item not been taken, for each of these."""
    shorter = [np.delete(history, place) for place in places]
    target = np.array([item], dtype=np.int64)
    whole, *others = scored(opened.model, [history, *shorter], [target] * (1 + len(places))).tolist()
    return [whole - score for score in others]


def reasons(opened: RecommenderModel, history: Ints, item: int, found: Weighed, most: int) -> list[Reason]:
    """The items that spoke most for one; none where nothing looks at a history, or all spoke against it."""
    if isinstance(opened.model, Popularity):
        return []
    order = np.argsort(-found.adds, kind="stable").tolist()
    places = [at for at in order if history[at] != item and found.adds[at] > 0][:most]
    lost = effects(opened, history, item, places)
    return [
        Reason(int(history[at]), float(found.weights[at]), effect)
        for at, effect in zip(places, lost, strict=True)
        if effect > 0
    ]


def advise(opened: RecommenderModel, history: Ints, top: int = 10, most: int = 3) -> list[Advice]:
    """What is recommended for a history, and why."""
    chosen = best(opened, history, top)
    looks = weighed(opened, history, [item for item, _ in chosen])
    return [
        Advice(item, score, reasons(opened, history, item, look, most))
        for (item, score), look in zip(chosen, looks, strict=True)
    ]

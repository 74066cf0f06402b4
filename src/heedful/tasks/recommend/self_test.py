"""The self-test of recommenders: scores of items for a fixed history."""

from __future__ import annotations

from typing import Any

import numpy as np

from heedful.data.catalog import Catalog
from heedful.models import Popularity, Recommender
from heedful.tasks.base import SelfTest
from heedful.tasks.recommend.score import score_items

N_ITEMS = 8


def make_input(assets: Catalog) -> dict[str, list[str]]:
    """Return the items of a history, and those to score."""
    items = assets.items
    return {"history": list(items[:: max(1, len(items) // N_ITEMS)][:N_ITEMS]), "items": list(items[-N_ITEMS:])}


def outputs(model: Recommender | Popularity, assets: Catalog, value: Any) -> list[float]:
    """Return the score of each item."""
    history, items = (
        np.array([assets.item_numbers[name] for name in value[key][:N_ITEMS]], np.int64) for key in ("history", "items")
    )
    return [float(score) for score in score_items(model, [history], [items])]


SELF_TEST = SelfTest(make_input, outputs)

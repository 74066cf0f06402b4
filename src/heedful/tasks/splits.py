"""The splits that a recipe names: those of pairs, and the choice of one to evaluate on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from heedful.config import Recipe
from heedful.data.pairs import LABEL_ROLES, TEXT_ROLES, PairFiles, TextPair, open_pairs, world_pairs
from heedful.errors import DataError, nearest

Split = PairFiles | list[TextPair]
S = TypeVar("S")


def open_splits(recipe: Recipe, base: Path) -> dict[str, Split]:
    """Return the pairs of every split the recipe names: streams over files, or a world's lists."""
    if recipe.data.world is not None:
        return dict(world_pairs(recipe.data.world))
    return dict(open_pairs(recipe.data, base, pair_roles(recipe)))


def pair_roles(recipe: Recipe) -> tuple[str, str]:
    """Return what the two columns of a table are for the recipe's task."""
    return LABEL_ROLES if recipe.task.kind == "classify" else TEXT_ROLES


def describe_splits(splits: Mapping[str, Split]) -> list[str]:
    """Return a line for the log about each table of the training and validation data."""
    files = [splits[name] for name in ("train", "valid") if name in splits]
    lines = [line for pairs in files if isinstance(pairs, PairFiles) for line in pairs.describe()]
    return list(dict.fromkeys(lines))


def has_test_pairs(recipe: Recipe, base: Path) -> bool:
    """Return whether the recipe's pairs have a test split."""
    return recipe.data.world is not None or "test" in open_pairs(recipe.data, base, pair_roles(recipe))


def choose_split(splits: Mapping[str, S], split: str, model: str) -> S:
    """Return a split by its name, or raise an error that names the model and the splits there are."""
    if split not in splits:
        raise DataError(f'the recipe of {model} names no "{split}" data; {nearest(split, splits)}; or give --data')
    return splits[split]

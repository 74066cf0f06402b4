"""What a task does not read is said, not swallowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from heedful.config import load_recipe
from heedful.config.unread import USED_BY, unread
from heedful.tasks.kind import FILES
from test_cli import heedful

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_our_own_recipes_set_nothing_in_vain(path: Path) -> None:
    assert unread(load_recipe(path)) == []


def test_tasks_are_named_as_they_are() -> None:
    assert {task for tasks in USED_BY.values() for task in tasks} <= set(FILES)


def test_it_is_said_once_and_nothing_else_changes(tmp_path: Path) -> None:
    recipe = next(path for path in RECIPES if path.stem == "world-tastes")
    small = ("data.world.train=40", "data.world.valid=9", "data.world.test=9", "training.epochs=1")
    said = 'training.smoothing is set, and not read where task.kind = "recommend"'
    done = heedful("train", recipe, *small, "training.smoothing=0.1", "--out", tmp_path / "m")
    assert done.returncode == 0
    assert done.stderr.count(said) == 1
    checked = heedful("check", recipe, "decoding.beam=3")
    assert checked.returncode == 0
    assert checked.stderr == 'note: decoding.beam is set, and not read where task.kind = "recommend"\n'

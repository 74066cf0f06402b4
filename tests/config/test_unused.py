"""Settings without effect for a task are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

import heedful as heedful_package
from command_line import heedful
from config.sections import RECIPES, sections, write
from heedful import registry
from heedful.config import load_recipe
from heedful.config.unused import USED_BY, unused_settings
from heedful.tasks.registry import TASKS


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_shipped_recipes_set_nothing_without_effect(path: Path) -> None:
    assert unused_settings(load_recipe(path)) == []


def test_the_table_names_tasks_that_exist() -> None:
    assert {task for tasks in USED_BY.values() for task in tasks} <= set(TASKS)


def test_training_and_check_report_it_once(tmp_path: Path) -> None:
    recipe = next(path for path in RECIPES if path.stem == "world-tastes")
    small = ("data.world.train=40", "data.world.valid=9", "data.world.test=9", "training.epochs=1")
    sentence = "`training.label_smoothing` has no effect for this task."
    done = heedful("train", recipe, *small, "training.label_smoothing=0.1", "--out", tmp_path / "m")
    assert done.returncode == 0
    assert done.stderr.count(sentence) == 1
    checked = heedful("check", recipe, "decoding.beam=3")
    assert checked.returncode == 0
    assert checked.stderr == "note: `decoding.beam` has no effect for this task.\n"


def test_the_table_names_settings_that_exist() -> None:
    known = dict(sections())
    for setting in USED_BY:
        section, _, key = setting.rpartition(".")
        assert key in known[section].model_fields


def test_settings_of_a_preset_are_not_reported(tmp_path: Path) -> None:
    loaded = load_recipe(write(tmp_path, "[data.world]\n"))
    assert unused_settings(loaded._replace(origins={("training", "negatives"): "preset"})) == []


def test_tasks_of_plugins_are_not_reported(tmp_path: Path) -> None:
    heedful_package.register("task", "spell", object())
    try:
        path = write(tmp_path, '[task]\nkind = "spell"\n[data.world]\n[training]\nnegatives = 3\n')
        assert unused_settings(load_recipe(path)) == []
        translated = load_recipe(path, ["task.kind=translate"])
        assert unused_settings(translated) == ["`training.negatives` has no effect for this task."]
    finally:
        registry._registered["task"].clear()

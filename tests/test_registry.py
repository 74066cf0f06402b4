"""Names of scores, tasks and so on: built in, registered from Python, or from an installed plugin."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import heedful
from heedful import registry
from heedful.config import load_recipe
from heedful.errors import ConfigError, PluginError

RECIPE = """
[task]
kind = "{task}"
[data.world]
train = 20
"""


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    """Forget what a test registers."""
    yield
    for names in registry._registered.values():
        names.clear()
    registry._plugins.cache_clear()


def install(folder: Path, points: str, **modules: str) -> Path:
    """Write a package with entry points into a folder, as pip would."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    info = folder / "spelling_games-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: spelling-games\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{points}\n")
    return folder


def recipe(folder: Path, task: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(RECIPE.format(task=task))
    return path


def test_a_registered_name_can_stand_in_a_recipe(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'kind = "spell": no such kind; .*known: translate, summarize, .*read$'):
        load_recipe(recipe(tmp_path, "spell"))
    task = object()
    heedful.register("task", "spell", task)
    assert load_recipe(recipe(tmp_path, "spell")).recipe.task.kind == "spell"
    assert registry.get("task", "spell") is task
    with pytest.raises(ConfigError, match=r'kind = "spel": no such kind; did you mean "spell"\?'):
        load_recipe(recipe(tmp_path, "spel"))


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("taks", "spell", r'no extension point "taks"; did you mean "task"\?'),
        ("task", "translate", r'there is a built-in task "translate"; choose another name'),
        ("task", "Spell it", r"the name must consist of lower-case letters"),
        ("task", "", r"the name must consist of lower-case letters"),
    ],
)
def test_a_registration_that_cannot_work_says_why(kind: str, name: str, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        heedful.register(kind, name, object())


def test_an_unknown_name_is_answered_by_the_known_ones() -> None:
    with pytest.raises(PluginError, match=r'no task "translat"; did you mean "translate"\?'):
        registry.get("task", "translat")


def test_an_installed_plugin_is_loaded_when_its_name_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(install(tmp_path, "task.spell = spelling:TASK", spelling="TASK = ['spell']"))
    assert load_recipe(recipe(tmp_path, "spell")).recipe.task.kind == "spell"
    assert "spelling" not in sys.modules
    assert "spell" in registry.known_names("task")
    assert registry.get("task", "spell") == ["spell"]
    assert registry.get("task", "spell") is registry.get("task", "spell")
    del sys.modules["spelling"]


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (
            "task.spell = spelling:TASK",
            r"plugin spelling-games: entry point task.spell cannot be loaded: ZeroDivisionError: division by zero",
        ),
        ("taks.spell = spelling:TASK", r'plugin spelling-games: entry point taks.spell: no extension point "taks"'),
        ("task.read = spelling:TASK", r'plugin spelling-games: entry point task.read: there is a built-in task "read"'),
    ],
)
def test_a_broken_plugin_is_named(points: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(install(tmp_path, points, spelling="1 / 0"))
    with pytest.raises(PluginError, match=message):
        registry.get("task", "spell")


def test_plugins_are_not_searched_for_built_in_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def searched(kind: str) -> dict[str, object]:
        raise AssertionError(kind)

    monkeypatch.setattr(registry, "_plugins", searched)
    assert registry.is_known("task", "translate")


def test_a_recipe_is_checked_without_torch(tmp_path: Path) -> None:
    path = recipe(tmp_path, "translate")
    code = f"import sys, heedful.config; heedful.config.load_recipe({str(path)!r}); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

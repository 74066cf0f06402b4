"""The one-way corridor: each room imports only from rooms above it, and light rooms stay light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "heedful"
ROOMS = (
    "errors",
    "whole",
    "config",
    "record",
    "native",
    "data",
    "vision",
    "attention",
    "layers",
    "models",
    "decoding",
    "trace",
    "evaluation",
    "training",
    "view",
    "tasks",
    "studies",
    "serve",
    "cli",
    "__init__",
    "__main__",
)


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(tree: ast.AST) -> set[str]:
    """The rooms a file imports from, wherever in the file the import stands."""
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written in full"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "heedful" else [module]
            modules |= set(names)
    return {name.split(".")[1] for name in modules if name.startswith("heedful.")}


def climbs(path: Path) -> list[str]:
    """Imports of a file that go down the corridor."""
    here = ROOMS.index(room_of(path))
    rooms = imported_rooms(ast.parse(path.read_text(encoding="utf-8")))
    return [f"{path.name} ({ROOMS[here]}) imports {room}" for room in rooms if ROOMS.index(room) > here]


def test_every_room_is_named() -> None:
    found = {room_of(path) for path in SOURCE.rglob("*.py")}
    assert found <= set(ROOMS)


def test_no_room_imports_from_one_below_it() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 20
    assert [wrong for path in files for wrong in climbs(path)] == []


def test_the_walk_finds_a_wrong_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    (tmp_path / "attention").mkdir()
    wrong = tmp_path / "attention" / "bad.py"
    wrong.write_text("def f():\n    from heedful.models import Seq2Seq\n")
    assert climbs(wrong) == ["bad.py (attention) imports models"]


LIGHT = ["heedful", "heedful.cli.app", "heedful.config", "heedful.record", "heedful.view", "heedful.errors"]


@pytest.mark.parametrize(
    ("modules", "banned"),
    [
        (LIGHT, ["torch", "lightning_fabric", "matplotlib", "scipy"]),
        (["heedful.tasks.folder", "heedful.tasks.text"], ["lightning_fabric", "matplotlib", "scipy"]),
    ],
    ids=["no torch before it is needed", "using a model imports neither fabric nor matplotlib"],
)
def test_imports_stay_light(modules: list[str], banned: list[str]) -> None:
    code = f"import sys, {', '.join(modules)}; print(sorted(set(sys.modules) & set({banned!r})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

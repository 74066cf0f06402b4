"""Models that come with the package: found by name, or by the task they are for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from heedful.errors import ModelError, nearest
from heedful.tasks.folder import finished, read_card

SHELF = Path(__file__).parent.parent / "bundled"  # one folder a model


def bundled() -> dict[str, Path]:
    """Every model on the shelf, by name."""
    return {path.name: path for path in sorted(SHELF.glob("*")) if finished(path)}


def find(names: Sequence[Path], task: str) -> list[Path]:
    """The folders meant by `-m`: a folder, or the name of a bundled model; without any, the task's own."""
    shelf = bundled()
    if names:
        return [_found(name, shelf) for name in names]
    fitting = [path for path in shelf.values() if read_card(path)["task"] == task]
    if not fitting:
        raise ModelError(f"no model to {task} with comes with heedful yet: give a folder with -m")
    return fitting[:1]


def _found(name: Path, shelf: dict[str, Path]) -> Path:
    if name.exists() or name.name != str(name):
        return name
    if str(name) not in shelf and shelf:
        raise ModelError(
            f"{name}: there is no such model folder, nor a bundled model; {nearest(str(name), shelf)}"
        )
    return shelf.get(str(name), name)

"""The models that are part of the package, by name or by task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from heedful.errors import ModelError, nearest
from heedful.tasks.model_card import is_finished, read_card

BUNDLED_FOLDER = Path(__file__).parent.parent / "bundled"  # one folder per model


def bundled_models() -> dict[str, Path]:
    """Return the folder of every bundled model by its name."""
    return {path.name: path for path in sorted(BUNDLED_FOLDER.glob("*")) if is_finished(path)}


def find_models(names: Sequence[str | Path], task: str) -> list[Path]:
    """Return the model folders that `-m` names: paths or bundled models; without any, the bundled one for the task.

    A bundled model's name wins over a folder of the same name: write `./NAME` for the folder.
    """
    bundled = bundled_models()
    if names:
        return [_find_model(name, bundled) for name in names]
    suitable = [path for path in bundled.values() if read_card(path)["task"] == task]
    if not suitable:
        raise ModelError(f"no bundled model for {task}; pass one with -m")
    return suitable[:1]


def _find_model(name: str | Path, bundled: Mapping[str, Path]) -> Path:
    if str(name) in bundled:
        return bundled[str(name)]
    path = Path(name)
    if path.exists() or path.name != str(name) or not bundled:
        return path
    raise ModelError(f"{name}: no such model folder or bundled model; {nearest(str(name), bundled)}")

"""The sections of a recipe, for tests that go through all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from pydantic import BaseModel

from heedful.config import Recipe

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
STORED = Path(__file__).parents[1] / "stored" / "1"
WORLD = "[data.world]\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def subsection(annotation: object) -> type[BaseModel] | None:
    options = [annotation, *get_args(annotation)]
    return next((o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), None)


def sections(section: type[BaseModel] = Recipe, path: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield every section with its path."""
    yield path, section
    for name, info in section.model_fields.items():
        below = subsection(info.annotation)
        if below is not None:
            yield from sections(below, f"{path}.{name}".lstrip("."))

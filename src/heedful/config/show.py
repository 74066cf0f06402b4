"""A recipe as TOML, every resolved value written out: for `heedful check` and for the model folder."""

from __future__ import annotations

from collections.abc import Mapping

import tomli_w
from pydantic import BaseModel

from heedful.config.schema import Recipe


def recipe_toml(recipe: Recipe, origins: Mapping[tuple[str, ...], str] | None = None) -> str:
    """Every value of the recipe as TOML that can be read back as a recipe.

    With `origins` each line says what the setting means and, unless it has its default, where it was set.
    """
    lines: list[str] = []
    _section(recipe, (), origins, lines)
    return "\n".join(lines).strip() + "\n"


def _section(
    section: BaseModel, path: tuple[str, ...], origins: Mapping[tuple[str, ...], str] | None, lines: list[str]
) -> None:
    below: list[tuple[str, BaseModel]] = []
    values: list[tuple[str, str, str]] = []
    for name, info in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            below.append((name, value))
        elif value is not None and value != ():  # what is not set has no TOML value
            plain = list(value) if isinstance(value, tuple) else value
            text = tomli_w.dumps({name: plain}, multiline_strings=False).strip().replace("\n", " ")
            origin = (origins or {}).get((*path, name), "")
            values.append((text, info.description or "", origin))
    if values:
        lines.extend(["", f"[{'.'.join(path)}]"])
    width = max((len(text) for text, _, _ in values), default=0)
    for text, description, origin in values:
        note = f"# {description}" + (f" ({origin})" if origin else "")
        lines.append(text if origins is None else f"{text:<{width}}  {note}")
    for name, value in below:
        _section(value, (*path, name), origins, lines)


def differences(old: Recipe, new: Recipe) -> list[str]:
    """Every setting that two recipes disagree on, one line each."""
    before, now = _flat(old, ()), _flat(new, ())
    return [
        f"{name}: {before.get(name)!r} -> {now.get(name)!r}"
        for name in sorted(before | now)
        if before.get(name) != now.get(name)
    ]


def _flat(section: BaseModel, path: tuple[str, ...]) -> dict[str, object]:
    flat: dict[str, object] = {}
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            flat |= _flat(value, (*path, name))
        else:
            flat[".".join((*path, name))] = value
    return flat

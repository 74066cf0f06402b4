"""Writes a recipe as TOML with the values of all settings, for `heedful check` and the model folder."""

from __future__ import annotations

from collections.abc import Mapping

import tomli_w
from pydantic import BaseModel

from heedful.config.schema import Recipe


def recipe_toml(recipe: Recipe, origins: Mapping[tuple[str, ...], str] | None = None) -> str:
    """Return every value of a recipe as TOML, which loads as the same recipe.

    With `origins` a comment on each line describes the setting and, unless it is the default, where it was set.
    """
    lines: list[str] = []
    _render_section(recipe, (), origins, lines)
    return "\n".join(lines).strip() + "\n"


def _render_section(
    section: BaseModel, path: tuple[str, ...], origins: Mapping[tuple[str, ...], str] | None, lines: list[str]
) -> None:
    subsections: list[tuple[str, BaseModel]] = []
    values: list[tuple[str, str, str]] = []
    for name, info in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            subsections.append((name, value))
        elif value is not None and value != ():  # TOML has no null, and an empty list is the default
            plain = list(value) if isinstance(value, tuple) else value
            text = tomli_w.dumps({name: plain}, multiline_strings=False, indent=0).strip()
            text = text.replace("[\n", "[").replace(",\n]", "]").replace("\n", " ")  # arrays on one line
            origin = (origins or {}).get((*path, name), "")
            values.append((text, info.description or "", origin))
    if values:
        lines.extend(["", f"[{'.'.join(path)}]"])
    width = max((len(text) for text, _, _ in values), default=0)
    for text, description, origin in values:
        note = f"# {description}" + (f" ({origin})" if origin else "")
        lines.append(text if origins is None else f"{text:<{width}}  {note}")
    for name, value in subsections:
        _render_section(value, (*path, name), origins, lines)


def differences(old: Recipe, new: Recipe) -> list[str]:
    """Return a line `setting: old -> new` for each setting in which two recipes differ."""
    before, after = _flatten(old, ()), _flatten(new, ())
    return [
        f"{name}: {before.get(name)!r} -> {after.get(name)!r}"
        for name in sorted(before | after)
        if before.get(name) != after.get(name)
    ]


def _flatten(section: BaseModel, path: tuple[str, ...]) -> dict[str, object]:
    flat: dict[str, object] = {}
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            flat |= _flatten(value, (*path, name))
        else:
            flat[".".join((*path, name))] = value
    return flat

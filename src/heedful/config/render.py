"""Writes a recipe as TOML with the values of all settings, for `heedful check` and the model folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args, get_origin

import tomli_w
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from heedful.config.choice import Choice
from heedful.config.presets import presets_of
from heedful.config.schema import Recipe
from heedful.config.unused import is_used

Origins = Mapping[tuple[str, ...], str]


def recipe_toml(recipe: Recipe, origins: Origins | None = None) -> str:
    """Return every value of a recipe as TOML, which loads as the same recipe.

    With `origins` a comment on each line describes the setting, lists its choices and, unless it is the default, says
    where it was set; defaults of settings that the task does not read are left out.
    """
    lines: list[str] = []
    _render_section(recipe, (), _Comments(recipe.task.kind, origins) if origins is not None else None, lines)
    return "\n".join(lines).strip() + "\n"


class _Comments:
    """The comments of `heedful check` for a recipe of one task."""

    def __init__(self, task: str, origins: Origins) -> None:
        self.task, self.origins = task, origins

    def shows(self, path: tuple[str, ...]) -> bool:
        """Return whether a setting was set, or is read by the task."""
        return self.origins.get(path, "preset") != "preset" or is_used(path, self.task)

    def describe(self, path: tuple[str, ...], info: FieldInfo) -> str:
        names = presets_of(self.task) if path == ("model", "preset") else _choices(info)
        parts = [info.description or "", f"one of: {', '.join(names)}" if names else ""]
        origin = self.origins.get(path, "")
        return f"# {'; '.join(filter(None, parts))}" + (f" ({origin})" if origin else "")


def _choices(info: FieldInfo) -> list[str]:
    """Return the names that a setting allows; none if it is a number or any text."""
    choice = next((metadata for metadata in info.metadata if isinstance(metadata, Choice)), None)
    if choice is not None:
        return choice.known()
    return [str(name) for name in get_args(info.annotation)] if get_origin(info.annotation) is Literal else []


def _render_section(section: BaseModel, path: tuple[str, ...], comments: _Comments | None, lines: list[str]) -> None:
    subsections: list[tuple[str, BaseModel]] = []
    values: list[tuple[str, str]] = []
    for name, info in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            subsections.append((name, value))
        elif comments is not None and not comments.shows((*path, name)):
            continue
        elif value is not None and (value != () or comments is not None):  # TOML has no null; () is the default
            plain = list(value) if isinstance(value, tuple) else value
            text = tomli_w.dumps({name: plain}, multiline_strings=False, indent=0).strip()
            text = text.replace("[\n", "[").replace(",\n]", "]").replace("\n", " ")  # arrays on one line
            values.append((text, comments.describe((*path, name), info) if comments is not None else ""))
    if values:
        lines.extend(["", f"[{'.'.join(path)}]"])
    width = max((len(text) for text, _ in values), default=0)
    for text, comment in values:
        lines.append(f"{text:<{width}}  {comment}" if comment else text)
    for name, value in subsections:
        _render_section(value, (*path, name), comments, lines)


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

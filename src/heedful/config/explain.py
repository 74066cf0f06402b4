"""Pydantic's validation errors in the words of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel

from heedful.config.choice import UNKNOWN
from heedful.config.schema import Recipe
from heedful.errors import Problem, nearest

Keys = tuple[str, ...]
LIMITS = {  # error type -> key of the limit, and words
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text in quotes",
    "tuple_type": "a list",
    "list_type": "a list",
    "model_type": "a section",
    "model_attributes_type": "a section",
    "dict_type": "a section",
}


def explain(error: Any, path: str, override_texts: Mapping[Keys, str] | None = None) -> Problem:
    """Return one of pydantic's errors as a problem of the recipe, or of the override that caused it."""
    keys: Keys = tuple(str(part) for part in error["loc"])
    if error["type"] == "value_error":  # settings that conflict
        return Problem(path, ".".join(keys), str(error["ctx"]["error"]))
    overrides = (override_texts or {}).items()
    override = next((text for name, text in overrides if keys[: len(name)] == name[: len(keys)]), None)
    source = path if override is None else f'override "{override}"'
    return Problem(source, ".".join(keys[:-1]), _sentence(keys, error))


def _sentence(keys: Keys, error: Any) -> str:
    kind, key, value = error["type"], keys[-1], error.get("input")
    setting = f"{key} = {_toml(value)}"
    if kind == "missing":
        return f"{key}: is required"
    if kind == "extra_forbidden":
        what = "section" if isinstance(value, dict) else "setting"
        return f"{key}: no such {what}; {nearest(key, _section(keys[:-1]).model_fields)}"
    if kind == "literal_error":
        return f"{setting}: no such {key}; {nearest(str(value), _literals(keys))}"
    if kind == UNKNOWN:
        return f"{setting}: no such {key}; {nearest(str(value), error['ctx']['known'])}"
    if kind in LIMITS:
        limit, words = LIMITS[kind]
        return f"{setting}: must be {words} {error['ctx'][limit]}"
    if kind in EXPECTED:
        return f"{setting}: expected {EXPECTED[kind]}"
    return f"{setting}: {error['msg'][0].lower()}{error['msg'][1:]}"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def _section(keys: Keys) -> type[BaseModel]:
    """Return the class of a section by its path."""
    section: type[BaseModel] = Recipe
    for key in keys:
        annotation = section.model_fields[key].annotation
        options = [annotation, *get_args(annotation)]
        section = next(o for o in options if isinstance(o, type) and issubclass(o, BaseModel))
    return section


def _literals(keys: Keys) -> list[str]:
    return [str(name) for name in get_args(_section(keys[:-1]).model_fields[keys[-1]].annotation)]

"""Rewrites pydantic's validation errors as messages about the settings of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel

from heedful.config.choice import UNKNOWN
from heedful.config.schema import Recipe
from heedful.errors import Problem, nearest
from heedful.optional import not_none

Keys = tuple[str, ...]
MAX_SHOWN = 200  # characters of a value
LIMITS = {  # error type -> key of the limit in the error's context, and the words for it
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
EXPECTED = {  # error type -> what the value should have been
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


def explain_error(error: Any, path: str, override_texts: Mapping[Keys, str] | None = None) -> Problem:
    """Return the problem that an error of pydantic stands for, in the recipe at `path` or in an override."""
    keys: Keys = tuple(str(part) for part in error["loc"])
    if error["type"] == "value_error":  # raised by our own validators, with a message for users
        text = str(error["ctx"]["error"])
        is_section = _section_class(keys) is not None
        return (
            Problem(path, ".".join(keys), text)
            if is_section
            else Problem(path, ".".join(keys[:-1]), f"{keys[-1]} = {text}")
        )
    overrides = (override_texts or {}).items()
    override = next((text for name, text in overrides if keys[: len(name)] == name[: len(keys)]), None)
    source = path if override is None else f'override "{override}"'
    return Problem(source, ".".join(keys[:-1]), _describe(keys, error))


def _describe(keys: Keys, error: Any) -> str:
    """Return a sentence that names the setting, what is wrong, and what would be right."""
    error_type, key, value = error["type"], keys[-1], error.get("input")
    setting = f"{key} = {to_toml(value)}"
    if error_type == "missing":
        return f"{key}: is required"
    if error_type == "extra_forbidden":
        what = "section" if isinstance(value, dict) else "setting"
        return f"{key}: no such {what}; {nearest(key, not_none(_section_class(keys[:-1])).model_fields)}"
    if error_type == "literal_error":
        return f"{setting}: no such {key}; {nearest(str(value), _literal_values(keys))}"
    if error_type == UNKNOWN:
        return f"{setting}: no such {key}; {nearest(str(value), error['ctx']['known'])}"
    if error_type in LIMITS:
        limit, words = LIMITS[error_type]
        return f"{setting}: must be {words} {error['ctx'][limit]}"
    if error_type == "too_long":
        return f"{setting}: at most {error['ctx']['max_length']} can be given"
    if error_type in EXPECTED:
        return f"{setting}: expected {EXPECTED[error_type]}"
    return f"{setting}: {error['msg'][0].lower()}{error['msg'][1:]}"


def to_toml(value: Any) -> str:
    """Return a value as the recipe has it, a long one only by its beginning."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) >= 10**MAX_SHOWN:
        return "a number of too many digits"  # which Python refuses to write in decimals
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _section_class(keys: Keys) -> type[BaseModel] | None:
    """Return the pydantic class of the section at this path; None: it is the path of a setting."""
    section: type[BaseModel] = Recipe
    for key in keys:
        annotation = section.model_fields[key].annotation
        options = [annotation, *get_args(annotation)]
        below = next((o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), None)
        if below is None:
            return None
        section = below
    return section


def _literal_values(keys: Keys) -> list[str]:
    return [str(name) for name in get_args(not_none(_section_class(keys[:-1])).model_fields[keys[-1]].annotation)]

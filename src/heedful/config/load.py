"""Reading a recipe: TOML, overrides, presets, and every mistake at once in words a user can act on."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError

from heedful.config.presets import EVERY
from heedful.config.schema import Recipe
from heedful.config.training import DecodingConfig
from heedful.errors import ConfigError, Mistake, nearest

Keys = tuple[str, ...]


class Loaded(NamedTuple):
    """A checked recipe, the folder its paths are relative to, and where each set value came from."""

    recipe: Recipe
    base: Path
    origins: Mapping[Keys, str]  # "preset", "recipe" or "override"; a key not here has its default


def load_recipe(path: Path | str, overrides: Sequence[str] = ()) -> Loaded:
    """Read and check a recipe with `section.key=value` overrides; one `ConfigError` carries all mistakes."""
    path = Path(path)
    tree = _read(path)
    origins: dict[Keys, str] = dict.fromkeys(_leaves(tree), "recipe")
    mistakes: list[Mistake] = []
    spoken: dict[Keys, str] = {}  # what the user typed for each overridden key
    for text in overrides:
        _apply(text, tree, spoken, mistakes)
    origins.update(dict.fromkeys(spoken, "override"))
    tree = _filled(tree, origins)
    try:
        recipe = Recipe.model_validate(tree)
    except ValidationError as error:
        mistakes += [_explain(e, str(path), spoken) for e in error.errors()]
    if mistakes:
        raise ConfigError(mistakes)
    return Loaded(recipe, path.parent, origins)


def check_decoding(asked: Mapping[str, Any]) -> None:
    """Refuse options of the command line by the rules of a recipe's section [decoding]."""
    try:
        DecodingConfig.model_validate(dict(asked))
    except ValidationError as error:
        found = [{**e, "loc": ("decoding", *e["loc"])} for e in error.errors()]
        raise ConfigError([_explain(e, "the command line", {}) for e in found]) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))  # Windows marks a file's start
    except FileNotFoundError:
        folder = path.parent if path.parent.is_dir() else Path()
        there = sorted(p.name for p in folder.glob("*.toml"))
        hint = f"; {nearest(path.name, there)}" if there else ""
        raise ConfigError([Mistake(str(path), "", f"there is no such file{hint}")]) from None
    except IsADirectoryError:
        raise ConfigError([Mistake(str(path), "", "this is a folder; a recipe is a TOML file")]) from None
    except UnicodeDecodeError as error:
        raise ConfigError([Mistake(str(path), "", f"not UTF-8 text (byte {error.start})")]) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([Mistake(str(path), "", f"not valid TOML: {error}")]) from None
    except RecursionError:
        raise ConfigError([Mistake(str(path), "", "not valid TOML: nested too deeply")]) from None
    except OSError as error:
        raise ConfigError([Mistake(str(path), "", f"cannot be read: {error.strerror}")]) from None


def _apply(text: str, tree: dict[str, Any], spoken: dict[Keys, str], mistakes: list[Mistake]) -> None:
    """Put one `section.key=value` into the tree."""
    name, equals, value = text.partition("=")
    keys = tuple(name.strip().split("."))
    if not equals or len(keys) < 2 or not all(keys):
        mistakes.append(Mistake(f'override "{text}"', "", "expected section.key=value"))
        return
    node = tree
    for key in keys[:-1]:
        node = node.setdefault(key, {})
        if not isinstance(node, dict):
            mistakes.append(Mistake(f'override "{text}"', "", f"{key} is a value, not a section"))
            return
    node[keys[-1]] = _value(value.strip())
    spoken[keys] = text


def _value(text: str) -> Any:
    """A TOML value; what is none is taken as a bare string, so that `score=dot` needs no quotes."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    return parsed["value"] if set(parsed) == {"value"} else text


def _leaves(tree: Mapping[str, Any], above: Keys = ()) -> Iterable[Keys]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key)


def _filled(tree: dict[str, Any], origins: dict[Keys, str]) -> dict[str, Any]:
    """The tree with the preset's values where nothing is set; explicit keys win."""
    model = tree.get("model", {})
    if not isinstance(model, dict):
        return tree
    preset = EVERY.get(str(model.get("preset", "bigru-gru")), {})
    for keys in _leaves(preset):
        node, value = model, preset
        for key in keys[:-1]:
            value = value[key]
            node = node.setdefault(key, {})
            if not isinstance(node, dict):
                break
        else:
            if keys[-1] not in node:
                node[keys[-1]] = value[keys[-1]]
                origins[("model", *keys)] = "preset"
    return {**tree, "model": model}


def _explain(error: Any, path: str, spoken: Mapping[Keys, str]) -> Mistake:
    """One of pydantic's errors in our words."""
    keys: Keys = tuple(str(part) for part in error["loc"])
    found = next((typed for name, typed in spoken.items() if keys[: len(name)] == name), None)
    where = path if found is None else f'override "{found}"'
    kind = error["type"]
    if kind == "value_error":  # a section whose settings do not fit together
        return Mistake(path, ".".join(keys), str(error["ctx"]["error"]))
    section, key = ".".join(keys[:-1]), keys[-1]
    return Mistake(where, section, _words(kind, keys, key, error))


def _words(kind: str, keys: Keys, key: str, error: Any) -> str:
    given = f"{key} = {_shown(error.get('input'))}"
    context = error.get("ctx", {})
    if kind == "missing":
        return f"{key}: needed but not given"
    if kind == "extra_forbidden":
        what = "section" if isinstance(error.get("input"), dict) else "setting"
        return f"{key}: no such {what}; {nearest(key, _fields(keys[:-1]))}"
    if kind == "literal_error":
        known = _literals(keys)
        return f"{given}: no such {key}; {nearest(str(error['input']), known)}"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return f"{given}: expected a section"
    limits = {"greater_than": "gt", "greater_than_equal": "ge", "less_than": "lt", "less_than_equal": "le"}
    words = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}
    if kind in limits:
        return f"{given}: must be {words[limits[kind]]} {context[limits[kind]]}"
    expected = {
        "int_type": "a whole number",
        "int_from_float": "a whole number",
        "float_type": "a number",
        "finite_number": "a finite number",
        "bool_type": "true or false",
        "string_type": "text in quotes",
        "tuple_type": "a list",
    }
    if kind in expected:
        return f"{given}: expected {expected[kind]}"
    return f"{given}: {error['msg'][0].lower()}{error['msg'][1:]}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def _section(keys: Keys) -> type[BaseModel]:
    """The model of a section by its dotted path."""
    here: type[BaseModel] = Recipe
    for key in keys:
        annotation = here.model_fields[key].annotation
        options = [annotation, *get_args(annotation)]
        here = next(o for o in options if isinstance(o, type) and issubclass(o, BaseModel))
    return here


def _fields(keys: Keys) -> list[str]:
    return list(_section(keys).model_fields)


def _literals(keys: Keys) -> list[str]:
    return [str(name) for name in get_args(_section(keys[:-1]).model_fields[keys[-1]].annotation)]

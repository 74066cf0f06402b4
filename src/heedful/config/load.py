"""Loading a recipe: TOML, overrides and presets; all problems are reported at once."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from heedful.config.decoding import DecodingOptions
from heedful.config.explain import explain
from heedful.config.migrate import migrate_key, migrate_recipe, migrate_value
from heedful.config.presets import PRESETS
from heedful.config.schema import Recipe
from heedful.errors import ConfigError, Problem, nearest

Keys = tuple[str, ...]


class LoadedRecipe(NamedTuple):
    """A valid recipe, the folder its paths are relative to, and where each value was set."""

    recipe: Recipe
    base: Path
    origins: Mapping[Keys, str]  # "preset", "recipe" or "override"; other settings have their defaults


def load_recipe(path: Path | str, overrides: Sequence[str] = ()) -> LoadedRecipe:
    """Load a recipe with `section.key=value` overrides; one `ConfigError` carries all problems."""
    path = Path(path)
    tree = migrate_recipe(_read_toml(path))
    origins: dict[Keys, str] = dict.fromkeys(_leaves(tree), "recipe")
    problems: list[Problem] = []
    override_texts: dict[Keys, str] = {}  # what the user typed for each overridden key
    for text in overrides:
        _apply_override(text, tree, override_texts, problems)
    origins.update(dict.fromkeys(override_texts, "override"))
    tree = _fill_from_preset(tree, origins)
    try:
        recipe = Recipe.model_validate(tree)
    except ValidationError as error:
        problems += [explain(e, str(path), override_texts) for e in error.errors()]
    if problems:
        raise ConfigError(problems)
    return LoadedRecipe(recipe, path.parent, origins)


def decoding_options(values: Mapping[str, Any], source: str = "the decoding options") -> DecodingOptions:
    """Return the decoding options with these values set; `None` means not set.

    A beam size alone chooses the method: 1 is greedy search, more is beam search.

    >>> decoding_options({"beam": 4, "seed": None}).model_dump(exclude_unset=True)
    {'method': 'beam', 'beam': 4}
    """
    options = {name: value for name, value in values.items() if value is not None}
    if "beam" in options and "method" not in options:
        options = {"method": "greedy" if options["beam"] == 1 else "beam", **options}
    try:
        return DecodingOptions.model_validate(options)
    except ValidationError as error:
        errors = [{**e, "loc": ("decoding", *e["loc"])} for e in error.errors()]
        raise ConfigError([explain(e, source) for e in errors]) from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))  # editors on Windows may add a byte-order mark
    except FileNotFoundError:
        folder = path.parent if path.parent.is_dir() else Path()
        recipes = sorted(p.name for p in folder.glob("*.toml"))
        hint = f"; {nearest(path.name, recipes)}" if recipes else ""
        problem = f"there is no such file{hint}"
    except IsADirectoryError:
        problem = "this is a folder; a recipe is a TOML file"
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 text (byte {error.start})"
    except tomllib.TOMLDecodeError as error:
        problem = f"not valid TOML: {error}"
    except RecursionError:
        problem = "not valid TOML: nested too deeply"
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    raise ConfigError([Problem(str(path), "", problem)])


def _apply_override(text: str, tree: dict[str, Any], override_texts: dict[Keys, str], problems: list[Problem]) -> None:
    """Put one `section.key=value` into the tree."""
    name, equals, value = text.partition("=")
    keys = tuple(name.strip().split("."))
    if not equals or len(keys) < 2 or not all(keys):
        problems.append(Problem(f'override "{text}"', "", "expected section.key=value"))
        return
    keys = migrate_key(keys)
    node = tree
    for key in keys[:-1]:
        node = node.setdefault(key, {})
        if not isinstance(node, dict):
            problems.append(Problem(f'override "{text}"', "", f"{key} is a value, not a section"))
            return
    node[keys[-1]] = migrate_value(keys, _parse_value(value.strip()))
    override_texts[keys] = text


def _parse_value(text: str) -> Any:
    """Parse a TOML value; anything else is a string, so that `score=dot` needs no quotes."""
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


def _fill_from_preset(tree: dict[str, Any], origins: dict[Keys, str]) -> dict[str, Any]:
    """Return the tree with the preset's values where nothing is set; explicit keys win."""
    model = tree.get("model", {})
    if not isinstance(model, dict):
        return tree
    preset = PRESETS.get(str(model.get("preset", "bigru-gru")), {})
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

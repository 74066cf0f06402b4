"""Loads a recipe from TOML, overrides and a preset; one error reports all problems."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from heedful.config.decoding import DecodingOptions
from heedful.config.explain import explain_error, to_toml
from heedful.config.migrate import merge_columns, migrate_key, migrate_recipe, migrate_value
from heedful.config.presets import PRESETS, presets_of
from heedful.config.schema import Recipe
from heedful.errors import ConfigError, Problem, nearest

Keys = tuple[str, ...]  # path of a setting, such as ("model", "encoder", "layers")
MAX_BYTES = 1_000_000  # of a recipe; the largest of the package has 3 kB
MAX_FILES_LISTED = 8  # of a folder, in an error
PATHS = {  # settings that name files or folders, which overrides may name as they are in the current folder
    ("data", "train"),
    ("data", "valid"),
    ("data", "test"),
    ("data", "extra_train"),
    ("data", "vectors"),
    ("data", "images", "folder"),
    ("data", "images", "captions"),
    ("data", "ratings", "titles"),
    ("training", "init_from"),
    ("training", "teachers"),
    ("training", "guided", "links"),
}
MAX_DEPTH = 8  # of sections in sections; the schema has 3


class LoadedRecipe(NamedTuple):
    """A valid recipe, the folder that its relative paths start at (`base`), and where each value was set."""

    recipe: Recipe
    base: Path
    origins: Mapping[
        Keys, str
    ]  # "preset", "recipe", "override" or "auto"; settings without an origin have their default


def load_recipe(path: Path | str, overrides: Sequence[str] = ()) -> LoadedRecipe:
    """Load a recipe with `section.key=value` overrides; raise a `ConfigError` with all problems."""
    path = Path(path)
    return resolve_recipe(_read_toml(path), str(path), path.parent, overrides)


def resolve_recipe(
    settings: Mapping[str, Any], source: str, base: Path, overrides: Sequence[str] = (), origin: str = "recipe"
) -> LoadedRecipe:
    """Return the recipe with these settings, as nested dicts, and the values of overrides and of the preset.

    `source` names the settings in errors; `origin` is where they were set. Relative paths start at `base`.
    """
    tree = migrate_recipe(settings)
    origins: dict[Keys, str] = dict.fromkeys(_setting_paths(tree), origin)
    problems: list[Problem] = []
    override_texts: dict[Keys, str] = {}  # what the user typed for each overridden key
    for text in overrides:
        _apply_override(text, tree, override_texts, problems, base)
    origins.update(dict.fromkeys(override_texts, "override"))
    merge_columns(tree, origins)
    preset_problems = _check_preset(tree, source, override_texts)
    problems += preset_problems
    tree = _fill_from_preset(tree, origins)
    try:
        recipe = Recipe.model_validate(tree)
    except ValidationError as error:
        errors = [each for each in error.errors() if not (preset_problems and _follows_from_preset(each))]
        problems += [explain_error(details, source, override_texts) for details in errors]
    if problems:
        raise ConfigError(problems)
    return LoadedRecipe(recipe, base, origins)


def _follows_from_preset(error: Any) -> bool:
    """Return whether an error is about the choices of [model] together, which another preset would change."""
    return bool(error["type"] == "value_error" and error["loc"] == ("model",))


def recipe_from_settings(
    settings: Mapping[str, Any], overrides: Sequence[str] = (), base: Path | None = None
) -> LoadedRecipe:
    """Return the recipe of a Python program: nested dicts, whose relative paths start at `base`."""
    return resolve_recipe(settings, "the settings", base or Path(), overrides)


def parse_overrides(overrides: Sequence[str]) -> dict[str, Any]:
    """Return `section.key=value` overrides as nested dicts; those that cannot be parsed are left out.

    >>> parse_overrides(["data.valid=dev.csv", "model.encoder.hidden=64"])
    {'data': {'valid': 'dev.csv'}, 'model': {'encoder': {'hidden': 64}}}
    """
    tree: dict[str, Any] = {}
    for text in overrides:
        _apply_override(text, tree, {}, [])
    merge_columns(tree, {})
    return tree


def decoding_options(values: Mapping[str, Any], source: str = "the decoding options") -> DecodingOptions:
    """Return the decoding options with these values set; `None` means not set.

    `source` says in errors where the values come from. A beam size without a method chooses it: 1 is greedy search,
    more is beam search.

    >>> decoding_options({"beam": 4, "seed": None}).model_dump(exclude_unset=True)
    {'method': 'beam', 'beam': 4}
    """
    options = {name: value for name, value in values.items() if value is not None}
    if "beam" in options and "method" not in options:
        options = {"method": "greedy" if options["beam"] == 1 else "beam", **options}
    try:
        return DecodingOptions.model_validate(options)
    except ValidationError as error:
        in_recipe = [{**details, "loc": ("decoding", *details["loc"])} for details in error.errors()]
        raise ConfigError([explain_error(details, source) for details in in_recipe]) from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ConfigError([Problem(str(path), "", f"larger than {MAX_BYTES:,} bytes, so not a recipe")])
        tree = tomllib.loads(raw.decode("utf-8-sig"))  # editors on Windows may add a byte-order mark
        if _is_deeper(tree, MAX_DEPTH):
            raise RecursionError
        return tree
    except FileNotFoundError:
        folder = path.parent if path.parent.is_dir() else Path()
        recipes = sorted(p.name for p in folder.glob("*.toml"))
        hint = f"; {nearest(path.name, recipes, MAX_FILES_LISTED)}" if recipes else ""
        problem = f"there is no such file{hint}"
    except IsADirectoryError:
        problem = "this is a folder; a recipe is a TOML file"
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 text (byte {error.start})"
    except ValueError as error:  # not only of TOML: numbers of thousands of digits
        problem = f"not valid TOML: {error}"
    except RecursionError:
        problem = "not valid TOML: nested too deeply"
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    raise ConfigError([Problem(str(path), "", problem)])


def _is_deeper(tree: Mapping[str, Any], limit: int) -> bool:
    """Return whether sections are nested deeper than `limit`; without recursion."""
    level = [tree]
    for _ in range(limit):
        level = [value for section in level for value in section.values() if isinstance(value, dict)]
    return bool(level)


def _apply_override(
    text: str, tree: dict[str, Any], override_texts: dict[Keys, str], problems: list[Problem], base: Path | None = None
) -> None:
    """Set one `section.key=value` in the tree; add a problem if it cannot be set."""
    name, equals, value = text.partition("=")
    keys = tuple(name.strip().split("."))
    if not equals or not 2 <= len(keys) <= MAX_DEPTH or not all(keys):
        problems.append(Problem(f'override "{text}"', "", "expected section.key=value"))
        return
    keys = migrate_key(keys)
    node = tree
    for key in keys[:-1]:
        node = node.setdefault(key, {})
        if not isinstance(node, dict):
            problems.append(Problem(f'override "{text}"', "", f"{key} is a setting, not a section"))
            return
    parsed = migrate_value(keys, _parse_value(value.strip()))
    node[keys[-1]] = _find_files(parsed, base) if base is not None and keys in PATHS else parsed
    override_texts[keys] = text


def _find_files(value: Any, base: Path) -> Any:
    """Return names of files in an override as they were typed: in the current folder, if the recipe's has none such."""
    if isinstance(value, list):
        return [_find_files(each, base) for each in value]
    if not isinstance(value, str) or not value:
        return value
    try:
        is_here = not (base / value).exists() and Path(value).exists()
    except (OSError, ValueError):  # a name that is too long, a null character
        return value
    return str(Path(value).absolute()) if is_here else value


def _parse_value(text: str) -> Any:
    """Parse a TOML value; anything else is a string, so that `score=dot` needs no quotes."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return parsed["value"] if set(parsed) == {"value"} else text


def _setting_paths(tree: Mapping[str, Any], section: Keys = ()) -> Iterable[Keys]:
    """Yield the path of every setting in a tree of sections."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _setting_paths(value, (*section, key))
        else:
            yield (*section, key)


def _check_preset(tree: dict[str, Any], source: str, override_texts: Mapping[Keys, str]) -> list[Problem]:
    """Return the problem of a preset that the task does not have, and drop it, so that nothing follows from it."""
    task, model = tree.get("task", {}), tree.get("model", {})
    if not isinstance(task, dict) or not isinstance(model, dict) or not isinstance(model.get("preset"), str):
        return []
    preset, kind = model["preset"], str(task.get("kind", "translate"))
    names = presets_of(kind)
    if preset in names:
        return []
    model["preset"] = names[0]
    path = ("model", "preset")
    text = override_texts.get(path, override_texts.get(path[:1]))
    reason = f"not a preset for {kind}" if preset in PRESETS else "no such preset"
    where = source if text is None else f'override "{text}"'
    return [Problem(where, "model", f"preset = {to_toml(preset)}: {reason}; {nearest(preset, names)}")]


def _fill_from_preset(tree: dict[str, Any], origins: dict[Keys, str]) -> dict[str, Any]:
    """Return the tree with the preset's values for all settings of [model] that are not set."""
    model = tree.get("model", {})
    if not isinstance(model, dict):
        return tree
    preset = PRESETS.get(str(model.get("preset", "bigru-gru")), {})
    _fill_section(model, preset, ("model",), origins)
    return {**tree, "model": model}


def _fill_section(section: dict[str, Any], preset: Mapping[str, Any], path: Keys, origins: dict[Keys, str]) -> None:
    """Set what a section does not set to the values of the preset, and note their origin."""
    for key, value in preset.items():
        if isinstance(value, dict):
            subsection = section.setdefault(key, {})
            if isinstance(subsection, dict):  # anything else is reported by the validation
                _fill_section(subsection, value, (*path, key), origins)
        elif key not in section:
            section[key] = value
            origins[(*path, key)] = "preset"

"""A recipe for data without one: columns and sizes are found from the data, everything else from the task.

Imports no torch, so that errors in the data are reported at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.config import DataConfig, LoadedRecipe
from heedful.config.auto import BY_TASK, DataSize, Settings, auto_settings, split_settings
from heedful.config.load import parse_overrides, resolve_recipe
from heedful.data.pairs import LABEL_ROLES, TEXT_ROLES
from heedful.data.paths import locate
from heedful.data.profile import (
    Profile,
    guess_columns,
    profile_captions,
    profile_pairs,
    profile_ratings,
    profile_text,
)
from heedful.data.tables import RATING_ROLES, is_table
from heedful.errors import DataError, nearest

ORIGIN = "auto"
READING = ("columns", "header", "separator", "where", "on_error")  # settings of [data] that change what is read
MAX_TOKENS = {"translate": 150, "reply": 150, "transduce": 150}  # of longer pairs; others are cut
UNITS = {"classify": "texts", "recommend": "interactions", "caption": "captions", "read": "lines"}


class AutoRecipe(NamedTuple):
    """A recipe that was made for some data, and a line for the log that sums it up."""

    loaded: LoadedRecipe
    note: str


def make_recipe(task: str, files: Sequence[str], overrides: Sequence[str] = (), base: Path | None = None) -> AutoRecipe:
    """Return a recipe for these data files; `overrides` win over what follows from the data.

    `files` is one table, or a source and a target file; for `caption` a folder of images and a table, for
    `recommend` a table of ratings and optionally one of titles, for `read` a text. Relative names start at `base`.
    """
    if task not in BY_TASK:
        raise DataError(f'--task "{task}": no such task; {nearest(task, BY_TASK)}')
    base = base or Path()
    given = parse_overrides(overrides)
    data, profile = _DATA.get(task, _pair_data)(task, files, base, _section(given, "data"))
    if "on_error" not in _section(given, "data"):
        _require_good_lines(profile, files)
    settings = auto_settings(task, DataSize(profile.rows, profile.source_words, profile.target_words))
    if _section(given, "tokenizer").get("kind", "bpe") != "bpe":
        settings.get("tokenizer", {}).pop("bpe_dropout", None)
    recipe: Settings = {"task": {"kind": task}, "data": data, **settings}
    loaded = resolve_recipe(recipe, "the recipe made for this data", base, overrides, ORIGIN)
    return AutoRecipe(loaded, _summary(task, profile, loaded))


def _require_good_lines(profile: Profile, files: Sequence[str]) -> None:
    """Raise a DataError if half of the lines or more would be skipped: the file is not what it was taken for."""
    bad_lines = profile.bad_lines
    if bad_lines is not None and bad_lines.count >= profile.rows:
        total = profile.rows + bad_lines.count
        hint = 'to train on the others set data.on_error = "skip"'
        message = f"{', '.join(files)}: {bad_lines.count:,} of {total:,} lines cannot be used; {hint}"
        raise DataError("\n".join([message, *bad_lines.describe()]))


def _section(tree: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = tree.get(name, {})
    return section if isinstance(section, Mapping) else {}


def _reading(given: Mapping[str, Any], **settings: Any) -> DataConfig:
    """Return the settings that change how the data is read; lines that cannot be read are skipped and counted."""
    chosen = {key: given[key] for key in READING if key in given}
    return DataConfig.model_construct(**{"on_error": "skip", **settings, **_as_tuples(chosen)})


def _as_tuples(settings: Mapping[str, Any]) -> dict[str, Any]:
    lists = ("columns", "where")
    return {
        key: tuple(value) if isinstance(value, list) else (value,) if key in lists else value
        for key, value in settings.items()
    }


def _held_out(task: str, profile: Profile, given: Mapping[str, Any]) -> Settings:
    return {} if given.get("valid") or "split_valid" in given else split_settings(task, profile.rows)


def _count(files: Sequence[str], most: int, expected: str) -> None:
    if not 1 <= len(files) <= most:
        raise DataError(f"expected {expected}, got {len(files)} files: {', '.join(files[:5])}")


def _pair_data(task: str, files: Sequence[str], base: Path, given: Mapping[str, Any]) -> tuple[Settings, Profile]:
    _count(files, 2, "one table (CSV, TSV, JSONL, JSON, Parquet), or a source and a target file")
    roles = LABEL_ROLES if task == "classify" else TEXT_ROLES
    reading = _reading(given)
    paths = [locate(name, base) for name in files]
    if len(paths) == 1:
        columns = guess_columns(paths[0], roles, reading, 2)
        reading = reading.model_copy(update={"columns": columns})
    profile = profile_pairs(files, base, reading, roles)
    data: Settings = {"train": list(files), "on_error": "skip", **_held_out(task, profile, given)}
    if reading.columns and len(paths) == 1:
        data["columns"] = list(reading.columns)
    if task in MAX_TOKENS:
        data |= {"on_too_long": "skip", "max_source": MAX_TOKENS[task], "max_target": MAX_TOKENS[task]}
    else:
        data |= {"on_too_long": "cut", "max_source": 400}
        if task != "classify":  # a label is no sequence
            data["max_target"] = 150
    return data, profile


def _rating_data(_task: str, files: Sequence[str], base: Path, given: Mapping[str, Any]) -> tuple[Settings, Profile]:
    _count(files, 2, "a table of ratings, and optionally one of titles")
    path = locate(files[0], base)
    reading = _reading(given)
    reading = reading.model_copy(update={"columns": guess_columns(path, RATING_ROLES, reading, 2)})
    ratings: Settings = {"hold_out": "last"} if len(reading.columns) > 2 else {}
    if len(files) > 1:
        ratings["titles"] = files[1]
    data: Settings = {"train": [files[0]], "on_error": "skip", "ratings": ratings}
    if reading.columns:
        data["columns"] = list(reading.columns)
    return data, profile_ratings(path, reading)


def _caption_data(task: str, files: Sequence[str], base: Path, given: Mapping[str, Any]) -> tuple[Settings, Profile]:
    _count(files, 2, "a folder of images and a table of captions")
    folders = [name for name in files if (base / name).is_dir()]
    tables = [name for name in files if name not in folders]
    if len(tables) != 1:
        raise DataError("expected a folder of images and a table of captions")
    path = locate(tables[0], base)
    folder = folders[0] if folders else str(Path(tables[0]).parent)
    folder = str(_section(given, "images").get("folder", folder))
    reading = _reading(given)
    profile = profile_captions(path, reading)
    data: Settings = {"on_error": "skip", "images": {"folder": folder, "captions": tables[0]}}
    if reading.columns:
        data["columns"] = list(reading.columns)
    return data | _held_out(task, profile, given), profile


def _text_data(task: str, files: Sequence[str], base: Path, given: Mapping[str, Any]) -> tuple[Settings, Profile]:
    _count(files, 1, "one text file, or one table")
    path = locate(files[0], base)
    reading = _reading(given)
    data: Settings = {"train": list(files), "on_error": "skip", "on_too_long": "cut", "max_source": 200}
    if is_table(path) or reading.columns:
        columns = guess_columns(path, ("text",), reading, 1)
        reading = reading.model_copy(update={"columns": columns})
        data["columns"] = list(columns)
    profile = profile_text(path, reading)
    return data | _held_out(task, profile, given), profile


_DATA = {"recommend": _rating_data, "caption": _caption_data, "read": _text_data}


def _summary(task: str, profile: Profile, loaded: LoadedRecipe) -> str:
    recipe = loaded.recipe
    parts = [f"preset {recipe.model.preset}"]
    if task != "recommend":
        kind = {"bpe": "subwords", "unigram": "subwords"}.get(recipe.tokenizer.kind, f"{recipe.tokenizer.kind}s")
        parts.append(f"at most {recipe.tokenizer.vocab_size:,} {kind}")
    parts.append(f"{recipe.training.epochs} epochs")
    if recipe.data.split_valid:
        parts.append(f"{recipe.data.split_valid:.2%} of the data for validation")
    unit = UNITS.get(task, "pairs")
    return f"settings for {profile.rows:,} {unit if profile.rows > 1 else unit[:-1]}: {', '.join(parts)}"

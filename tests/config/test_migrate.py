"""Recipes of format 1 load for ever: the migration table against all stored recipes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from config.sections import RECIPES, STORED, WORLD, sections, write
from heedful.config import Recipe, load_recipe, recipe_toml
from heedful.config.load import resolve_recipe
from heedful.config.migrate import KEYS, SECTIONS, VALUES, migrate_key, migrate_recipe, migrate_value

OLD_RECIPES = sorted((STORED / "recipes").glob("*.toml"))
OLD_FOLDERS = sorted((STORED / "resolved").glob("*.toml"))
MERGED = {  # into data.columns, data.header and data.separator; see the tests of merged columns
    ("data", "columns"),
    ("data", "fields"),
    *(("data", "ratings", key) for key in ("time", "header", "separator")),
}
RENAMED = {"my-own": "my-own-translate", "sst2-taught": "sst2-distilled", "sst5-taught": "sst5-distilled"} | {
    f"multi30k-en-{language}-taught": f"multi30k-en-{language}-distilled" for language in ("de", "fr")
}


def leaves(tree: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, (*above, key))
        else:
            yield (*above, key), value


def value_at(recipe: Recipe, keys: tuple[str, ...]) -> Any:
    value: Any = recipe
    for key in keys:
        value = getattr(value, key)
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("path", [*OLD_RECIPES, *OLD_FOLDERS], ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_every_value_of_a_stored_recipe_keeps_its_meaning(path: Path) -> None:
    recipe = load_recipe(path).recipe
    old = list(leaves(tomllib.loads(path.read_text(encoding="utf-8"))))
    assert len(old) > 5
    for keys, value in old:
        new = migrate_key(keys)
        if keys in MERGED:
            continue
        assert value_at(recipe, new) == migrate_value(new, value), keys


@pytest.mark.parametrize("path", OLD_FOLDERS, ids=lambda p: p.stem)
def test_a_recipe_resolved_by_format_1_equals_the_one_resolved_now(path: Path) -> None:
    """Defaults and presets are unchanged: what format 1 wrote into a model folder is what is resolved today."""
    assert load_recipe(path).recipe == load_recipe(STORED / "recipes" / path.name).recipe


@pytest.mark.parametrize("path", OLD_RECIPES, ids=lambda p: p.stem)
def test_the_shipped_recipes_are_the_stored_ones_under_new_names(path: Path) -> None:
    shipped = next(p for p in RECIPES if p.stem == RENAMED.get(path.stem, path.stem))
    old, new = load_recipe(path).recipe, load_recipe(shipped).recipe
    assert (old.model, old.decoding, old.tokenizer) == (new.model, new.decoding, new.tokenizer)
    moved = {"init_from", "teachers"}  # folders of trained models have moved
    assert old.training.model_dump(exclude=moved) == new.training.model_dump(exclude=moved)


def test_a_migrated_recipe_is_not_migrated_again() -> None:
    for path in OLD_RECIPES:
        tree = migrate_recipe(tomllib.loads(path.read_text(encoding="utf-8")))
        assert migrate_recipe(tree) == tree


def test_what_is_written_has_no_old_name(tmp_path: Path) -> None:
    for path in OLD_FOLDERS:
        text = recipe_toml(load_recipe(path).recipe)
        for keys, _ in leaves(tomllib.loads(text)):
            assert migrate_key(keys) == keys
        assert load_recipe(write(tmp_path, text)).recipe == load_recipe(path).recipe


def test_the_table_renames_to_settings_that_exist_and_from_settings_that_do_not() -> None:
    known = dict(sections())
    for section, renamed in KEYS.items():
        fields = known[section].model_fields
        assert set(renamed.values()) <= set(fields), section
        assert not set(renamed) & set(fields), f"{section}: an old name has a new meaning"
    for old, new in SECTIONS.items():
        assert new in known
        assert old not in known
    for setting in VALUES:
        section, _, key = setting.rpartition(".")
        assert key in known[section].model_fields


@pytest.mark.parametrize(
    ("override", "section", "key", "value"),
    [
        ("training.rate=0.5", "training", "learning_rate", 0.5),
        ("decoding.alpha=0.6", "decoding", "length_penalty", 0.6),
        ("data.longer=refuse", "data", "on_too_long", "error"),
        ("task.kind=summarise", "task", "kind", "summarize"),
    ],
)
def test_overrides_of_format_1_are_understood(
    override: str, section: str, key: str, value: object, tmp_path: Path
) -> None:
    recipe = load_recipe(write(tmp_path, WORLD), [override]).recipe
    assert getattr(getattr(recipe, section), key) == value


@pytest.mark.parametrize("order", ["update-look-generate", "look-update-generate", "look-generate-update"])
def test_a_step_order_of_format_1_keeps_its_order(order: str, tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, WORLD), [f"model.decoder.order={order}"]).recipe
    assert recipe.model.decoder.step_order == order.replace("look", "attend")


FILES = {"train": ["a.tsv"], "valid": ["b.tsv"]}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"columns": [2, 1], "fields": ["source", "target"]}, {"columns": (2, 1)}),
        ({"columns": [1, 2], "fields": ["source", "target"]}, {"columns": ()}),
        ({"train": ["a.JSONL.gz"], "columns": [1, 2], "fields": ["en", "vi"]}, {"columns": ("en", "vi")}),
        ({"train": "a.ndjson", "fields": ["en", "vi"]}, {"columns": ("en", "vi")}),
        ({"train": ["a.jsonl"], "columns": [1, 2], "fields": ["source", "target"]}, {"columns": ()}),
        ({"ratings": {"time_column": 4}}, {"columns": (1, 2, 4)}),
        ({"columns": [3, 2], "ratings": {"time": 1}}, {"columns": (3, 2, 1)}),
        ({"ratings": {"header": True, "separator": "::"}}, {"header": "yes", "separator": "::"}),
        (
            {"ratings": {"header": False, "separator": "", "time": 0}},
            {"header": "auto", "separator": "", "columns": ()},
        ),
    ],
)
def test_the_settings_of_columns_became_one(old: dict[str, Any], new: dict[str, object]) -> None:
    is_ratings = "ratings" in old
    settings = {
        "task": {"kind": "recommend" if is_ratings else "translate"},
        "data": FILES | old,
        "model": {"preset": "nais-prod" if is_ratings else "cgru"},
    }
    loaded = resolve_recipe(settings, "recipe", Path())
    assert {key: getattr(loaded.recipe.data, key) for key in new} == new
    written = tomllib.loads(recipe_toml(loaded.recipe))
    assert resolve_recipe(written, "recipe", Path()).recipe == loaded.recipe


def test_old_settings_of_columns_are_understood_as_overrides(tmp_path: Path) -> None:
    path = write(tmp_path, '[data]\ntrain = "a.jsonl"\nsplit_valid = 0.1\n')
    loaded = load_recipe(path, ['data.fields=["en", "vi"]'])
    assert loaded.recipe.data.columns == ("en", "vi")
    assert loaded.origins["data", "columns"] == "override"

"""Recipes: what is accepted, what is refused, and in which words."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from heedful.config import Recipe, differences, load_recipe, recipe_toml
from heedful.config.presets import PRESETS
from heedful.errors import ConfigError

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
WORLD = "[data.world]\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def complaint(path: Path, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_recipe(path, overrides)
    return str(caught.value)


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.name)
def test_every_shipped_recipe_is_valid_and_reads_back_as_written(path: Path, tmp_path: Path) -> None:
    recipe = load_recipe(path).recipe
    again = load_recipe(write(tmp_path, recipe_toml(recipe))).recipe
    assert again == recipe
    assert differences(recipe, again) == []


def test_all_mistakes_are_reported_at_once_with_file_key_and_nearest_name(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '[data.world]\nnmae = "phrases"\n[model.attention]\nscroe = "dot"\nscore = "aditive"\n'
        'hidden = "many"\nwindow = 0\n[modle]\n',
    )
    text = complaint(path, "training.rate=fast", "nonsense", "model.attention.placement=lokal-p")
    assert f"{path} [model.attention] cannot be used:" in text
    assert '  - scroe: no such setting; did you mean "score"? known: score, normaliser,' in text
    assert '  - score = "aditive": no such score; did you mean "additive"? known: additive, concat,' in text
    assert '  - hidden = "many": expected a whole number' in text
    assert "  - window = 0: must be more than 0" in text
    assert '  - nmae: no such setting; did you mean "name"?' in text
    assert '  - modle: no such section; did you mean "model"?' in text
    assert (
        'override "training.rate=fast" [training] cannot be used:\n  - rate = "fast": expected a number'
        in text
    )
    assert 'override "nonsense" cannot be used:\n  - expected section.key=value' in text
    assert 'override "model.attention.placement=lokal-p" [model.attention]' in text
    assert 'did you mean "local-p"?' in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "data: needed but not given"),
        ("[data]\n", "give train and valid files, or a world"),
        ('[data]\ntrain = ["a.tsv"]\nvalid = ["b.tsv"]\n[data.world]\n', "give files or a world, not both"),
        (
            WORLD + '[model.attention]\nscore = "dot"\ncoverage = true\n',
            'needs score = "additive", not "dot"',
        ),
        (
            WORLD + '[model.attention]\nplacement = "hard"\nnormaliser = "smoothed-softmax"\n',
            "smoothed-softmax cannot serve",
        ),
        (
            WORLD + '[model.attention]\nscore = "dot"\n[model.decoder]\nhidden = 100\n',
            "the decoder gives 100 and the encoder 256; general takes any two sizes",
        ),
        (WORLD + "[model.attention]\nheads = 3\n", "does not divide the query's width 128"),
        (WORLD + "[model]\ndropout = 1.0\n", "dropout = 1.0: must be less than 1.0"),
        (WORLD + "[model.attention]\ncoverage = 1\n", "coverage = 1: expected true or false"),
        (WORLD + "[model.attention]\nhidden = 1.5\n", "hidden = 1.5: expected a whole number"),
        (WORLD + "[model]\nencoder = 3\n", "encoder = 3: expected a section"),
        (WORLD + '[model]\npreset = "bigru"\n', 'did you mean "bigru-gru"?'),
        ("[data\n", "not valid TOML"),
        ('[data]\ntrain = "a.tsv"\n', 'train = "a.tsv": expected a list'),
    ],
)
def test_a_wrong_recipe_is_refused_in_words(tmp_path: Path, text: str, words: str) -> None:
    assert words in complaint(write(tmp_path, text))


def test_what_is_no_recipe_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "first.toml").touch()
    assert 'did you mean "first.toml"?' in complaint(tmp_path / "frist.toml")
    assert "this is a folder" in complaint(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'name = "caf\xe9"')
    assert "not UTF-8 text (byte 11)" in complaint(tmp_path / "latin.toml")


def test_overrides_win_and_their_origin_is_known(tmp_path: Path) -> None:
    path = write(tmp_path, WORLD + "[model.attention]\nhidden = 7\n")
    loaded = load_recipe(path, ["model.attention.hidden=9", "model.attention.score=general"])
    assert loaded.recipe.model.attention.hidden == 9
    assert loaded.recipe.model.attention.score == "general"
    assert loaded.origins[("model", "attention", "hidden")] == "override"
    assert loaded.origins[("model", "encoder", "bidirectional")] == "preset"
    shown = recipe_toml(loaded.recipe, loaded.origins)
    assert "hidden = 9" in shown
    assert "(override)" in shown


def test_explicit_keys_win_over_the_preset(tmp_path: Path) -> None:
    path = write(tmp_path, WORLD + '[model.attention]\nscore = "general"\n[model]\npreset = "rnnsearch"\n')
    model = load_recipe(path).recipe.model
    assert (model.attention.score, model.decoder.order) == ("general", "look-update-generate")


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_resolves(tmp_path: Path, name: str) -> None:
    assert load_recipe(write(tmp_path, WORLD), [f"model.preset={name}"]).recipe.model.preset == name


def walk(section: type[BaseModel], path: str) -> list[str]:
    missing = []
    for name, info in section.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            missing += walk(kind, f"{path}.{name}")
        elif not info.description:
            missing.append(f"{path}.{name}")
    return missing


def test_every_setting_says_what_it_means() -> None:
    assert walk(Recipe, "recipe") == []


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_override_is_taken_or_refused_but_never_crashes(key: str, value: str) -> None:
    with contextlib.suppress(ConfigError):
        load_recipe(RECIPES[0], [f"model.attention.{key}={value}"])

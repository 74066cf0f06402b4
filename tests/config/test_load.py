"""Loading recipes: presets, overrides, and where each value was set."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.sections import RECIPES, WORLD, sections, subsection, write
from heedful.config import Recipe, differences, load_recipe, recipe_toml
from heedful.config.presets import CAPTIONERS, CLASSIFIERS, LANGUAGE_MODELS, PRESETS, RECOMMENDERS
from heedful.errors import ConfigError

MOODS = '[task]\nkind = "classify"\n[data.world]\nname = "moods"\n[model]\npreset = "classify-mean"\n'


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.stem)
def test_every_shipped_recipe_is_valid_and_loads_again_as_written(path: Path, tmp_path: Path) -> None:
    loaded = load_recipe(path)
    for text in (recipe_toml(loaded.recipe), recipe_toml(loaded.recipe, loaded.origins)):
        again = load_recipe(write(tmp_path, text)).recipe
        assert again == loaded.recipe
        assert differences(loaded.recipe, again) == []


def task_settings(preset: str) -> list[str]:
    """Return the overrides that a preset needs to be a valid recipe."""
    if preset in CAPTIONERS:
        return ["task.kind=caption", "data.world.name=scenes"]
    if preset in CLASSIFIERS:
        return ["task.kind=classify", "data.world.name=moods"]
    if preset in RECOMMENDERS:
        return ["task.kind=recommend", "data.world.name=tastes"]
    return ["task.kind=read"] if preset in LANGUAGE_MODELS else []


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_valid_and_loads_again_as_written(name: str, tmp_path: Path) -> None:
    loaded = load_recipe(write(tmp_path, WORLD), [f"model.preset={name}", *task_settings(name)])
    assert loaded.recipe.model.preset == name
    assert load_recipe(write(tmp_path, recipe_toml(loaded.recipe))).recipe == loaded.recipe
    from_preset = [keys for keys, origin in loaded.origins.items() if origin == "preset"]
    assert from_preset, "a preset sets something"
    for keys in from_preset:
        node: object = PRESETS[name]
        for key in keys[1:]:
            assert isinstance(node, dict | type(PRESETS[name]))
            node = node[key]
        value: object = loaded.recipe
        for key in keys:
            value = getattr(value, key)
        assert value == node, keys


def test_overrides_name_files_as_they_are_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "recipes").mkdir()
    path = write(tmp_path / "recipes", "[data]\ntrain = 'own.csv'\nvalid = 'v.csv'\n")
    monkeypatch.chdir(tmp_path)
    for name in ("own.csv", "here.csv", "both.csv", "recipes/both.csv"):
        (tmp_path / name).write_text("a,b\n")
    assert load_recipe(path).recipe.data.train == ("own.csv",), "a recipe names files from its folder on"
    here = str(tmp_path / "here.csv")
    assert load_recipe(path, ["data.train=here.csv", "data.valid=both.csv"]).recipe.data.train == (here,)
    assert load_recipe(path, ["data.valid=both.csv"]).recipe.data.valid == ("both.csv",)
    loaded = load_recipe(path, ['data.train=["here.csv", "data:x/y.csv"]', "data.test=missing.csv"])
    assert loaded.recipe.data.train == (here, "data:x/y.csv")
    assert loaded.recipe.data.test == ("missing.csv",)


def test_overrides_win_over_the_recipe_and_the_recipe_over_the_preset(tmp_path: Path) -> None:
    path = write(tmp_path, WORLD + '[model]\npreset = "rnnsearch"\n[model.attention]\nhidden = 7\nscore = "general"\n')
    loaded = load_recipe(path, ["model.attention.hidden=9"])
    attention = loaded.recipe.model.attention
    assert (attention.hidden, attention.score) == (9, "general")
    assert loaded.recipe.model.decoder.step_order == "attend-update-generate"
    assert loaded.origins["model", "attention", "hidden"] == "override"
    assert loaded.origins["model", "attention", "score"] == "recipe"
    assert loaded.origins["model", "decoder", "step_order"] == "preset"
    assert ("training", "epochs") not in loaded.origins


def test_check_describes_every_value_and_names_its_origin(tmp_path: Path) -> None:
    loaded = load_recipe(write(tmp_path, WORLD + "[training]\nepochs = 3\n"), ["model.attention.hidden=9"])
    text = recipe_toml(loaded.recipe, loaded.origins)
    lines = {line.split(" = ")[0]: line for line in text.splitlines() if " = " in line}
    assert lines["epochs"].split("# ")[1] == "maximum number of epochs (recipe)"
    assert lines["bidirectional"].endswith("(preset)")
    assert "rdrop" in lines
    assert not lines["rdrop"].endswith(")") or lines["rdrop"].endswith("(Liang 2021)")
    attention = text[text.index("[model.attention]") :]
    assert "hidden = 9" in attention
    assert "(override)" in attention


@pytest.mark.parametrize(
    ("recipe", "shown", "hidden"),
    [
        ("world-moods", "[model.classifier]", "[model.decoder]"),
        ("world-moods", "class_weights = []", "negatives"),
        ("world-tastes", "negatives = 4", "[tokenizer]"),
        ("world-phrases", "[decoding]", "vectors"),
        ("ptb-lstm", "shortlist", "[model.encoder]"),
    ],
)
def test_check_shows_what_the_task_reads(recipe: str, shown: str, hidden: str) -> None:
    loaded = load_recipe(next(path for path in RECIPES if path.stem == recipe))
    text = recipe_toml(loaded.recipe, loaded.origins)
    assert f"\n{shown}" in text
    assert f"\n{hidden}" not in text
    assert f"\n{hidden}" in recipe_toml(loaded.recipe), "a model folder has every value"


def test_check_shows_what_was_set_without_effect() -> None:
    loaded = load_recipe(next(path for path in RECIPES if path.stem == "world-tastes"), ["decoding.beam=3"])
    assert "[decoding]\nbeam = 3  # " in recipe_toml(loaded.recipe, loaded.origins)


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        ("schedule", ("constant", "inverse-sqrt", "cosine", "linear", "plateau")),
        ("header", ("auto", "yes", "no")),
        ("preset", ("classify-learned", "classify-mean")),
        ("score", ("additive", "dot")),
    ],
)
def test_check_lists_the_choices_of_a_setting(setting: str, names: tuple[str, ...], tmp_path: Path) -> None:
    loaded = load_recipe(write(tmp_path, MOODS))
    (line,) = [
        line for line in recipe_toml(loaded.recipe, loaded.origins).splitlines() if line.startswith(f"{setting} =")
    ]
    listed = line.partition("one of: ")[2].partition(" (")[0].split(", ")
    assert set(names) <= set(listed)
    assert "cgru" not in listed


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("training.epochs=9", 9),
        ("training.keep_best=true", True),
        ("training.learning_rate=0.5", 0.5),
        ("training.metric=bleu", "bleu"),
        ('training.metric="7"', "7"),
        ("training.metric=a b", "a b"),
        ('training.teachers=["a", "b"]', ("a", "b")),
    ],
)
def test_overrides_are_toml_values_or_bare_strings(override: str, value: object, tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, MOODS), [override]).recipe
    assert getattr(recipe.training, override.split("=")[0].split(".")[1]) == value


def test_an_override_can_open_a_section(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, ""), ["data.world.train=7"]).recipe
    assert recipe.data.world is not None
    assert recipe.data.world.train == 7


def test_a_recipe_with_a_byte_order_mark_loads(tmp_path: Path) -> None:
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbf" + WORLD.encode())
    assert load_recipe(path).recipe.data.world is not None


def test_paths_are_relative_to_the_recipe(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    assert load_recipe(write(tmp_path / "below", WORLD)).base == tmp_path / "below"


def test_differences_name_the_setting_and_both_values(tmp_path: Path) -> None:
    path = write(tmp_path, WORLD)
    old, new = (
        load_recipe(path).recipe,
        load_recipe(path, ["training.epochs=3", "model.attention.score=general"]).recipe,
    )
    assert differences(old, new) == ["model.attention.score: 'additive' -> 'general'", "training.epochs: 10 -> 3"]


def test_differences_include_a_section_that_only_one_recipe_has(tmp_path: Path) -> None:
    files = load_recipe(write(tmp_path, '[data]\ntrain = ["a.tsv"]\nvalid = ["b.tsv"]\n')).recipe
    world = load_recipe(write(tmp_path, WORLD)).recipe
    assert "data.world.train: None -> 20000" in differences(files, world)
    assert "data.world.train: 20000 -> None" in differences(world, files)


def test_every_user_of_a_world_of_tastes_may_have_an_item_held_out(tmp_path: Path) -> None:
    users = '[data.world]\nname = "tastes"\ntrain = 10\nvalid = 5\ntest = 5\n'
    recipe = load_recipe(write(tmp_path, users), ["task.kind=recommend", "model.preset=fism"]).recipe
    assert recipe.data.world is not None


def test_every_setting_has_a_description() -> None:
    missing = [
        f"{path}.{name}"
        for path, section in sections()
        for name, info in section.model_fields.items()
        if not info.description and subsection(info.annotation) is None
    ]
    assert missing == []
    assert all(section.__doc__ for _, section in sections())


def test_sections_are_frozen() -> None:
    recipe = Recipe.model_validate({"data": {"world": {}}})
    with pytest.raises(ValueError, match="frozen"):
        recipe.training.epochs = 3  # type: ignore[misc]


@settings(deadline=None)
@given(st.text(max_size=30), st.text(max_size=30))
def test_any_override_loads_or_is_refused(key: str, value: str) -> None:
    with contextlib.suppress(ConfigError):
        load_recipe(RECIPES[0], [f"model.attention.{key}={value}"])

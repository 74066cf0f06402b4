"""Model folders: what is saved is what is loaded, and damage is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import small
from heedful.config import DataConfig, Recipe, WorldConfig, recipe_toml
from heedful.data.readers import TextPair
from heedful.errors import ModelError
from heedful.models import build
from heedful.tasks.folder import open_model, save_model
from heedful.tasks.text import Vocabularies, learn, translate
from heedful.tasks.tracing import Wanted, trace_line

PAIRS = [TextPair("the black cat", "le chat noir"), TextPair("the dog", "le chien")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    recipe = Recipe(data=DataConfig(world=WorldConfig()), model=small.config())
    words = learn(PAIRS, recipe)
    torch.manual_seed(3)
    model = build(recipe.model, len(words.source), len(words.target))
    save_model(tmp_path / "m", recipe, words, model, {"exact": 0.5})
    return tmp_path / "m"


def test_whoever_may_read_the_recipe_may_read_the_weights(folder: Path) -> None:
    assert len({path.stat().st_mode for path in folder.iterdir() if path.is_file()}) == 1


def test_a_model_reads_back_as_saved(folder: Path) -> None:
    opened = open_model(folder)
    assert opened.card["figures"] == {"exact": 0.5}
    assert opened.recipe.model == small.config()
    again = open_model(folder)
    lines = ["the cat", "the unknown dog"]
    outputs = translate(opened.model, lines, opened.words, opened.recipe.decoding)
    assert outputs == translate(again.model, lines, again.words, again.recipe.decoding)
    assert sorted(p.name for p in folder.iterdir()) == [
        "model.json",
        "model.safetensors",
        "recipe.toml",
        "source.tokenizer.json",
        "target.tokenizer.json",
    ]


def test_a_trace_shows_the_words_as_typed_and_weights_that_sum_to_one(folder: Path) -> None:
    opened = open_model(folder)
    found = trace_line(opened, Wanted("the zebra sleeps"), opened.recipe.decoding)
    assert [t.text for t in found.source.tokens] == ["the", "zebra", "sleeps", "</s>"]
    assert [t.role for t in found.source.tokens] == ["normal", "unknown", "unknown", "end"]
    assert found.matrix().sum(axis=1) == pytest.approx(1.0)


def test_saving_over_an_old_model_replaces_it(folder: Path) -> None:
    opened = open_model(folder)
    save_model(folder, opened.recipe, opened.words, opened.model, {"exact": 1.0})
    assert open_model(folder).card["figures"] == {"exact": 1.0}


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("model.json", "not a finished model"),
        ("model.safetensors", "incomplete: model.safetensors is missing"),
        ("recipe.toml", "incomplete: recipe.toml is missing"),
        ("source.tokenizer.json", "incomplete: source.tokenizer.json is missing"),
    ],
)
def test_a_missing_part_is_named(folder: Path, part: str, words: str) -> None:
    (folder / part).unlink()
    with pytest.raises(ModelError, match=words):
        open_model(folder)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("model.json", "model.json: damaged"),
        ("model.safetensors", "model.safetensors: damaged"),
        ("recipe.toml", "its recipe cannot be used"),
        ("target.tokenizer.json", "target.tokenizer.json: not a tokeniser"),
    ],
)
def test_a_truncated_part_is_named(folder: Path, part: str, words: str) -> None:
    content = (folder / part).read_bytes()
    half = len(content) // 2
    if part == "recipe.toml":  # within a line
        half = content.index(b"=", half) + 1
    (folder / part).write_bytes(content[:half])
    with pytest.raises(ModelError, match=words):
        open_model(folder)


def test_one_bit_that_fell_over_is_noticed(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"model.safetensors: damaged: not the bytes that were saved"):
        open_model(folder)
    card = json.loads((folder / "model.json").read_text())
    del card["sha256"]  # as older models have it
    (folder / "model.json").write_text(json.dumps(card))
    open_model(folder)


def test_a_folder_of_another_format_or_recipe_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no such model folder"):
        open_model(tmp_path / "nowhere")
    opened = open_model(folder)
    wider = opened.recipe.model_copy(update={"model": small.config(hidden=9)})
    (folder / "recipe.toml").write_text(recipe_toml(wider), encoding="utf-8")
    with pytest.raises(ModelError, match="damaged, or not this recipe's"):
        open_model(folder)
    (folder / "model.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(ModelError, match="format 99, but this heedful reads format 1"):
        open_model(folder)


def test_vocabularies_keep_their_sides_apart(folder: Path) -> None:
    words = Vocabularies.load(folder)
    assert words.source.decode(words.source.encode("the cat")) == "the cat"
    assert words.target.decode(words.target.encode("the chat")) == "<unk> chat"

"""Model folders: loaded as they were saved; errors name damaged files; folders of format 1 are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import small_models
from heedful.config import DataConfig, Recipe, WorldConfig, recipe_toml
from heedful.data.pairs import TextPair
from heedful.errors import ModelError
from heedful.models import build_seq2seq
from heedful.tasks.base import TraceRequest
from heedful.tasks.model_folder import load_model, read_card, save_model
from heedful.tasks.seq2seq.assets import Seq2SeqAssets
from heedful.tasks.seq2seq.predict import generate_texts, make_predictor
from heedful.tasks.seq2seq.trace import trace_line

STORED = Path(__file__).parent.parent / "stored" / "1"
PAIRS = [TextPair("the black cat", "le chat noir"), TextPair("the dog", "le chien")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    recipe = Recipe(data=DataConfig(world=WorldConfig()), model=small_models.attention_config())
    assets = Seq2SeqAssets.train(PAIRS, recipe)
    torch.manual_seed(3)
    model = build_seq2seq(recipe.model, len(assets.source), len(assets.target))
    save_model(tmp_path / "m", recipe, assets, model, {"exact": 50.0})
    return tmp_path / "m"


def test_all_files_have_the_same_permissions(folder: Path) -> None:
    assert len({path.stat().st_mode for path in folder.iterdir() if path.is_file()}) == 1


def test_a_model_is_loaded_as_it_was_saved(folder: Path) -> None:
    first, second = load_model(folder), load_model(folder)
    assert (first.card["format"], first.card["metrics"]) == (2, {"exact": 50.0})
    assert first.recipe.model == small_models.attention_config()
    lines = ["the cat", "the unknown dog"]
    outputs = [generate_texts(make_predictor([model]), lines, model.recipe.decoding) for model in (first, second)]
    assert outputs[0] == outputs[1]
    assert sorted(path.name for path in folder.iterdir()) == [
        "model.json",
        "model.safetensors",
        "recipe.toml",
        "source.tokenizer.json",
        "target.tokenizer.json",
    ]


def test_a_trace_shows_words_as_typed_and_weights_that_sum_to_one(folder: Path) -> None:
    loaded = load_model(folder)
    trace = trace_line(loaded, TraceRequest("the zebra sleeps"), loaded.recipe.decoding)
    assert [token.text for token in trace.source.tokens] == ["the", "zebra", "sleeps", "</s>"]
    assert [token.role for token in trace.source.tokens] == ["normal", "unknown", "unknown", "end"]
    assert trace.matrix().sum(axis=1) == pytest.approx(1.0)


def test_saving_over_a_model_replaces_it(folder: Path) -> None:
    loaded = load_model(folder)
    save_model(folder, loaded.recipe, loaded.assets, loaded.model, {"exact": 100.0})
    assert load_model(folder).card["metrics"] == {"exact": 100.0}


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("model.json", "not a finished model"),
        ("model.safetensors", "incomplete: model.safetensors is missing"),
        ("recipe.toml", "incomplete: recipe.toml is missing"),
        ("source.tokenizer.json", "incomplete: source.tokenizer.json is missing"),
    ],
)
def test_a_missing_file_is_named(folder: Path, name: str, error: str) -> None:
    (folder / name).unlink()
    with pytest.raises(ModelError, match=error):
        load_model(folder)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("model.json", "model.json: damaged"),
        ("model.safetensors", "model.safetensors: damaged"),
        ("recipe.toml", "cannot use its recipe"),
        ("target.tokenizer.json", "target.tokenizer.json: not a tokenizer"),
    ],
)
def test_a_truncated_file_is_named(folder: Path, name: str, error: str) -> None:
    content = (folder / name).read_bytes()
    half = len(content) // 2
    if name == "recipe.toml":  # within a line
        half = content.index(b"=", half) + 1
    (folder / name).write_bytes(content[:half])
    with pytest.raises(ModelError, match=error):
        load_model(folder)


def test_a_flipped_bit_is_noticed(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"model.safetensors: damaged: its SHA-256 differs from the card's"):
        load_model(folder)
    card = json.loads((folder / "model.json").read_text())
    del card["sha256"]  # as in models of the first versions
    (folder / "model.json").write_text(json.dumps(card))
    load_model(folder)


def test_another_format_or_recipe_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nowhere: no such model folder"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(ModelError, match=r"model\.json: is a file; a model is a folder"):
        load_model(folder / "model.json")
    loaded = load_model(folder)
    wider = loaded.recipe.model_copy(update={"model": small_models.attention_config(hidden=9)})
    (folder / "recipe.toml").write_text(recipe_toml(wider), encoding="utf-8")
    with pytest.raises(ModelError, match="damaged, or does not match its recipe"):
        load_model(folder)
    (folder / "model.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(ModelError, match=r"format 99, but .* reads formats 1 to 2; update heedful"):
        load_model(folder)


def test_each_side_has_its_own_vocabulary(folder: Path) -> None:
    assets = Seq2SeqAssets.load(folder)
    assert assets.source.decode(assets.source.encode("the cat")) == "the cat"
    assert assets.target.decode(assets.target.encode("the chat")) == "<unk> chat"


@pytest.mark.parametrize("name", ["cgru", "transformer"])
def test_a_folder_of_format_1_is_read(name: str) -> None:
    folder = STORED / name
    stored = json.loads((folder / "model.json").read_text())
    assert stored["format"] == 1
    card = read_card(folder)
    assert card["metrics"] == stored["figures"]
    assert not {"figures", "licence", "ended"} & set(card)
    loaded = load_model(folder)
    options = loaded.recipe.decoding.model_copy(update={"max_length": 6})
    (best,) = generate_texts(make_predictor([loaded]), ["the black cat sleeps"], options)
    assert best[0]

"""Model folders: loaded as they were saved; errors name damaged files; folders of format 1 are read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import small_models
from changed_models import change_card, forget_hashes, write_hashes
from heedful.config import DataConfig, ModelConfig, Recipe, WorldConfig, recipe_toml
from heedful.data.pairs import TextPair
from heedful.errors import ModelError
from heedful.models import build_seq2seq
from heedful.tasks.base import TraceRequest
from heedful.tasks.model_card import read_card
from heedful.tasks.model_folder import load_model, save_model
from heedful.tasks.seq2seq.assets import Seq2SeqAssets
from heedful.tasks.seq2seq.predict import generate_texts, make_predictor
from heedful.tasks.seq2seq.trace import trace_line

STORED = Path(__file__).parent.parent / "stored" / "1"
PAIRS = [TextPair("the black cat", "le chat noir"), TextPair("the dog", "le chien")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_small(tmp_path / "m", small_models.attention_config())


def save_small(folder: Path, config: ModelConfig) -> Path:
    """Save a small model with random weights."""
    recipe = Recipe(data=DataConfig(world=WorldConfig()), model=config)
    assets = Seq2SeqAssets.train(PAIRS, recipe)
    torch.manual_seed(3)
    model = build_seq2seq(recipe.model, len(assets.source), len(assets.target))
    save_model(folder, recipe, assets, model, {"exact": 50.0})
    return folder


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
    forget_hashes(folder)
    half = len(content) // 2
    if name == "recipe.toml":  # within a line
        half = content.index(b"=", half) + 1
    (folder / name).write_bytes(content[:half])
    with pytest.raises(ModelError, match=error):
        load_model(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "recipe.toml", "source.tokenizer.json", "target.tokenizer.json"])
def test_a_flipped_bit_is_noticed(folder: Path, name: str) -> None:
    assert sorted(read_card(folder)["files"]) == sorted(
        path.name for path in folder.iterdir() if path.name != "model.json"
    )
    path = folder / name
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelError, match=rf"{name}: damaged: its SHA-256 differs from the card's"):
        load_model(folder)


def test_cards_of_earlier_versions_have_the_hash_of_the_weights_or_none(folder: Path) -> None:
    path = folder / "model.safetensors"
    change_card(folder, sha256=read_card(folder)["files"][path.name], files=None)
    assert load_model(folder)
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r'its SHA-256 differs from the card\'s.*remove "sha256" from model\.json'):
        load_model(folder)
    change_card(folder, sha256=None)
    load_model(folder)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task", 7),
        ("task", ["translate"]),
        ("parameters", "many"),
        ("metrics", [1]),
        ("metrics", {"bleu": "high"}),
        ("license", {"a": 1}),
        ("files", ["model.safetensors"]),
        ("files", {"../model.safetensors": "00"}),
        ("files", {"model.safetensors": 7}),
        ("self_test", 1),
        ("format", True),
        ("format", "2"),
    ],
)
def test_a_card_with_a_wrong_type_is_refused(folder: Path, field: str, value: object) -> None:
    change_card(folder, **{field: value})
    with pytest.raises(ModelError, match=rf"model\.json: (damaged: \"{field}\" is missing or of a wrong type|format )"):
        read_card(folder)
    for text in ("[]", "7", "[" * 100_000, "9" * 5_000, '{"format": 1, "task": "translate", "figures": 7}'):
        (folder / "model.json").write_text(text)
        with pytest.raises(ModelError, match=r"model\.json: damaged"):
            read_card(folder)


@pytest.mark.parametrize("name", ["model.json", "recipe.toml", "model.safetensors", "source.tokenizer.json"])
def test_a_link_out_of_the_folder_is_not_opened(folder: Path, name: str) -> None:
    (folder / name).rename(folder.parent / name)
    (folder / name).symlink_to(folder.parent / name)
    with pytest.raises(ModelError, match=f"{name}: a link out of the model folder, which is not followed"):
        load_model(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 3e38, -3e38])
def test_weights_that_are_not_finite_are_refused(folder: Path, value: float) -> None:
    weights = load_file(folder / "model.safetensors")
    name = sorted(weights)[3]
    weights[name].view(-1)[1] = value
    save_file(weights, folder / "model.safetensors")
    write_hashes(folder)
    with pytest.raises(ModelError, match=f"{name} contains numbers that are not finite"):
        load_model(folder)
    weights[name].view(-1)[1] = 1e6
    save_file(weights, folder / "model.safetensors")
    write_hashes(folder)
    load_model(folder)


def test_a_baseline_that_was_never_set_is_no_damage(tmp_path: Path) -> None:
    model = small_models.attention_config(placement="hard")
    folder = save_small(tmp_path / "m", model)
    assert load_model(folder).model.get_buffer("baseline").isnan()


ABSURD = {
    "hidden": r"hidden = 3$",
    "max_positions": r"max_positions = \d+$",
    "embedding": r"embedding = 5$",
    "layers": r"layers = 1$",
}


@pytest.mark.parametrize("setting", ABSURD)
def test_sizes_are_compared_with_the_file_before_memory_is_taken(folder: Path, setting: str) -> None:
    """Building the model of such a recipe would take gigabytes."""
    size = {"layers": 200, "max_positions": 1_000_000}.get(setting, 60_000)
    text = (folder / "recipe.toml").read_text()
    (folder / "recipe.toml").write_text(re.sub(ABSURD[setting], f"{setting} = {size}", text, flags=re.MULTILINE))
    write_hashes(folder)
    with limited_memory(300_000_000):
        if setting == "max_positions":  # no table depends on it, so it is harmless
            load_model(folder)
        else:
            with pytest.raises(ModelError, match=r"size mismatch for|missing weights"):
                load_model(folder)


@contextmanager
def limited_memory(n_bytes: int) -> Iterator[None]:
    """Let this process allocate at most so many more bytes."""
    resource = pytest.importorskip("resource")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + n_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def test_a_header_that_is_too_long_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes((2**40).to_bytes(8, "little") + b"{}")
    write_hashes(folder)
    with pytest.raises(ModelError, match="its header is longer than"):
        load_model(folder)


def test_another_format_or_recipe_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nowhere: no such model folder"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(ModelError, match=r"model\.json: is a file; a model is a folder"):
        load_model(folder / "model.json")
    loaded = load_model(folder)
    forget_hashes(folder)
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

"""Captioners: trained, traced, replayed, edited, evaluated and drawn."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from PIL import Image

import heedful
import toy_backbones
from changed_models import forget_hashes, write_hashes
from command_line import complaint, here
from heedful.attention import NO_HOOKS
from heedful.config.presets import CAPTIONERS
from heedful.data.batch import Regions, TextBatch
from heedful.data.images.efficientnet import EfficientNetLite
from heedful.errors import ArgumentError
from heedful.tasks.caption.assets import all_regions
from heedful.tasks.caption.data import open_items
from heedful.tasks.caption.pointing_game import play_pointing_game
from heedful.tasks.license_notice import show_license_once
from heedful.tasks.model_folder import load_model
from heedful.trace.schema import Trace
from small_captioners import build_captioner, make_batch, save_scene

pytestmark = pytest.mark.usefixtures("as_users_run")
METRICS = ("caption-bleu-4", "caption-bleu-4-raw", "cider", "length-ratio")


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Use a feature cache of this module's own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HEEDFUL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def train_captioner(folder: Path, preset: str = "caption-soft", epochs: int = 1) -> Path:
    (folder / "recipe.toml").write_text(toy_backbones.caption_recipe(preset, epochs))
    done = here("train", folder / "recipe.toml", "--out", folder / "model")
    assert done.returncode == 0, done.stderr
    return folder / "model"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_captioner(tmp_path_factory.mktemp("captioner"))


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_scene(tmp_path_factory.mktemp("images") / "p.png")


def reverse_regions(batch: TextBatch) -> TextBatch:
    """Return the batch with its regions in reverse order; their mean stays the same."""
    assert isinstance(batch.source, Regions)
    return TextBatch(all_regions(batch.source.vectors.flip(1)), batch.target)


@pytest.mark.parametrize("preset", CAPTIONERS)
def test_teacher_forcing_equals_decoding_step_by_step(preset: str, tmp_path: Path) -> None:
    model, _ = build_captioner(preset, tmp_path)
    batch = make_batch()
    assert batch.target is not None
    with torch.no_grad():
        expected = model(batch).logits
        state, _ = model.initial_state(batch)
        for t in range(batch.target.ids.shape[1] - 1):
            last = batch.target.ids[:, t] if t else torch.full((3,), model.start_token)
            output = model.step(state, last, NO_HOOKS)
            state = output.state
            difference = (output.logits[:, 0] - expected[:, t]).abs()
            assert difference[batch.target.keep[:, t + 1]].max() < 1e-10


@pytest.mark.parametrize("preset", CAPTIONERS)
def test_every_preset_is_trained_traced_and_replayed(preset: str, tmp_path: Path, image: Path) -> None:
    model = train_captioner(tmp_path, preset)
    reports = [json.loads(line) for line in (model / "metrics.jsonl").read_text().splitlines()]
    assert np.isfinite(reports[-1]["metrics"]["loss"])
    done = here("trace", image, "-m", model, "--replay", "--detail", "full", "-o", tmp_path / "t.json")
    assert done.returncode == 0, done.stderr
    trace = Trace.load(tmp_path / "t.json")
    assert trace.source.image is not None
    assert trace.source.image.grid == (6, 6)
    assert trace.checks is not None
    names = ("scores", "weights", "context", "features", "output")
    assert all((getattr(trace.checks, name) or 0) < 1e-5 for name in names)
    if trace.alignment_site is not None:
        assert here("show", tmp_path / "t.json", "--view", "photo", "-o", tmp_path / "p.svg").returncode == 0
        words = [token.text for token in trace.target.tokens if token.role == "normal"]
        assert all(word in (tmp_path / "p.svg").read_text() for word in words)


def test_a_closed_gate_makes_the_output_independent_of_the_attention(tmp_path: Path) -> None:
    model, _ = build_captioner("caption-soft", tmp_path)
    gate, batch = model.decoder.gate, make_batch()
    assert isinstance(gate, torch.nn.Linear)
    with torch.no_grad():
        before = model(batch).logits
        gate.weight.zero_()
        gate.bias.fill_(-1e4)  # closed
        closed = model(batch).logits
        assert not torch.allclose(before, closed)
        model.decoder.attention.score.v.add_(3.0)  # type: ignore[union-attr,operator]
        assert torch.allclose(closed, model(reverse_regions(batch)).logits)


@pytest.mark.parametrize("embedded", [False, True])
def test_only_region_embeddings_distinguish_the_order_of_regions(embedded: bool, tmp_path: Path) -> None:
    model, _ = build_captioner("caption-soft", tmp_path, f"model.encoder.region_embedding={str(embedded).lower()}")
    batch = make_batch()
    with torch.no_grad():
        same = torch.allclose(model(batch).logits, model(reverse_regions(batch)).logits)
    assert same is not embedded


def test_an_image_is_captioned_from_a_file_or_stdin_and_drawn(
    model: Path, image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caption = here("caption", image, "-m", model).stdout.strip()
    assert caption
    assert here("caption", "-m", model, stdin=image.read_bytes()).stdout.strip() == caption
    record = here("caption", image, "-m", model, "--json", "--beam", "2", "--n-best", "2").stdout
    assert len(json.loads(record)["outputs"]) == 2
    assert here("caption", image, "-m", model, "-o", tmp_path / "drawn.png", "--raw").returncode == 0
    with Image.open(tmp_path / "drawn.png") as drawn:
        assert drawn.width > 300
    monkeypatch.chdir(tmp_path)
    assert here("caption", image, "-m", model, "--show").returncode == 0
    assert (tmp_path / "p-attention.png").is_file()
    captioner = heedful.load(model)
    assert captioner(image) == caption
    assert captioner([str(image)] * 2, beam=1) == [caption, caption]
    assert captioner.trace(str(image)).target.text == caption
    assert len(captioner(image, n_best=2)) == 2


def test_a_captioner_in_python_takes_paths_images_arrays_and_bytes(model: Path, image: Path) -> None:
    captioner = heedful.load(model)
    caption = captioner(image)
    with Image.open(image) as opened:
        pixels = np.asarray(opened.convert("RGB"))
        assert captioner([image, opened, pixels, pixels / 255, image.read_bytes()]) == [caption] * 5
    assert captioner.trace(pixels).target.text == caption
    assert [trace.target.text for trace in captioner.trace([pixels, image])] == [caption] * 2
    for wrong, message in [
        (7, "inputs: expected a path, an image of Pillow, an array or bytes, got int"),
        ([pixels, np.zeros((3, 64, 64))], r"inputs\[1\]: an array of shape \(3, 64, 64\) is not an image"),
        (pixels.astype(np.float32), "inputs: the values of an image of float32 must be from 0 to 1"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            captioner(wrong)


def test_a_captioner_is_evaluated_with_a_gallery(model: Path, tmp_path: Path) -> None:
    metrics = [word for name in METRICS for word in ("--metric", name)]
    done = here("evaluate", "-m", model, "--gallery", tmp_path / "g.html", "--json", *metrics)
    report = json.loads(done.stdout)
    assert report["images"] == 6
    names = {metric["name"] for metric in report["metrics"]}
    assert names == {"BLEU-4", "BLEU-4, no brevity penalty", "CIDEr-D", "length ratio"}
    page = (tmp_path / "g.html").read_text()
    assert page.count("<article>") == 6
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert "words per caption" in here("evaluate", "-m", model, "--metric", "cider").stdout


def test_a_folder_is_captioned_without_its_unreadable_images(model: Path, tmp_path: Path) -> None:
    for number in range(5):
        save_scene(tmp_path / f"{number}.png", number)
    (tmp_path / "bad.jpg").write_text("no image")
    (tmp_path / "notes.txt").write_text("not an image suffix")
    done = here("caption", tmp_path, "-m", model)
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 5
    assert "bad.jpg: not an image in a known format" in done.stderr
    assert "1 of 6 images could not be captioned" in done.stderr


def test_edited_attention_changes_the_trace(model: Path, image: Path, tmp_path: Path) -> None:
    words = ("trace", image, "-m", model, "-o", tmp_path / "t.json", "--set")
    assert here(*words, "onehot:step=0,position=7", "--what-if").returncode == 0
    trace = Trace.load(tmp_path / "t.json")
    assert trace.matrix()[0].argmax() == 7
    assert trace.parent is not None
    assert {effect.position for effect in trace.counterfactuals} == set(range(36))
    assert "an image has no words to replace" in complaint(*words, "source:position=0,text=dog")


def test_the_pointing_game_counts_words_and_has_baselines(model: Path) -> None:
    loaded = load_model(model)
    tokenizer = loaded.assets.target
    with torch.no_grad():  # always generates "a"
        output = loaded.model.decoder.read_out.output
        output.weight.zero_()
        output.bias.fill_(-10.0)
        for token in tokenizer.encode("a shape")[:-1]:
            output.bias[token] = 5.0
    items = open_items(loaded.recipe, Path())["test"]
    assert play_pointing_game(loaded, items) == {}, "no word names an object"
    with patch.object(type(tokenizer), "decode", lambda *_: "a shape a shape"):
        report = play_pointing_game(loaded, items)
    assert report["words"] == sum(row["count"] for row in report["by_word"].values())
    assert 0 <= report["pointing"] == report["pointing_content_words"] <= 1
    assert "pointing_relations" not in report
    with patch.object(type(tokenizer), "decode", lambda *_: "a shape above all"):
        report = play_pointing_game(loaded, items)
    by_word = report["by_word"]
    assert set(by_word) == {"shape", "above", "all"}
    assert report["pointing_content_words"] == by_word["shape"]["pointing"]
    relations = [by_word[word] for word in ("above", "all")]
    rate = sum(row["count"] * row["pointing"] for row in relations) / sum(row["count"] for row in relations)
    assert report["pointing_relations"] == pytest.approx(rate)
    assert 0 < report["region_weight_uniform"] < 0.5


@pytest.mark.parametrize("command", ["translate", "bench"])
def test_commands_for_text_refuse_a_captioner(model: Path, command: str) -> None:
    assert "model was trained to caption; use heedful caption" in complaint(command, "-m", model)


def test_another_backbone_is_refused(model: Path, image: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(model, tmp_path / "model"))
    fields = json.loads((copy / "backbone.json").read_text())
    forget_hashes(copy)
    (copy / "backbone.json").write_text(json.dumps({**fields, "fingerprint": "other"}))
    error = complaint("caption", image, "-m", copy)
    assert "was trained with other weights, or another version, of toy-patches" in error
    wrong = [
        ("width", 3e8),
        ("width", 300_000_000),
        ("grid", [0, 7]),
        ("grid", [7]),
        ("grid", None),
        ("fingerprint", 1),
    ]
    contents: list[Any] = [{}, [], *({**fields, key: value} for key, value in wrong)]
    for content in contents:
        (copy / "backbone.json").write_text(json.dumps(content))
        assert "backbone.json: damaged: not the description" in complaint("caption", image, "-m", copy)
    (copy / "backbone.json").write_text(json.dumps({**fields, "width": 60_000}))
    assert "size mismatch for" in complaint("caption", image, "-m", copy)


def test_a_strangers_captioner_runs_no_code(
    model: Path, image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name in a model folder is not imported, and a file outside it is not opened."""
    copy = Path(shutil.copytree(model, tmp_path / "model"))
    (tmp_path / "stranger.py").write_text("import pathlib\npathlib.Path('ran').touch()\nclass Net: ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    text = (copy / "recipe.toml").read_text()
    commands = (("caption", image), ("evaluate",), ("trace", image, "-o", tmp_path / "t.json"))
    for setting, message in (
        ('backbone = "stranger:Net"', "stranger:Net: no such backbone"),
        ('backbone = "stranger:Net"\ntune_backbone = true', "stranger:Net: no such backbone"),
        ('backbone = "timm:resnet18"', "the model folder has no backbone.pth, the weights of backbone timm:resnet18"),
        (
            f'backbone = "efficientnet-lite0"\nweights = "{tmp_path}/outside.pth"',
            "the model folder has no backbone.pth, the weights of backbone efficientnet-lite0",
        ),
    ):
        changed = re.sub(r"(?m)^(weights|tune_backbone) = .*\n", "", text)
        (copy / "recipe.toml").write_text(changed.replace('backbone = "toy-patches"', setting))
        write_hashes(copy)
        for command in commands:
            assert message in complaint(*command, "-m", copy)
    assert not (tmp_path / "ran").exists()


def test_a_file_of_backbone_weights_is_stored_in_the_model_folder(image: Path, tmp_path: Path) -> None:
    torch.manual_seed(1)
    torch.save(EfficientNetLite(0).state_dict(), tmp_path / "w.pth")
    recipe = toy_backbones.caption_recipe(n_images=6).replace(
        '"toy-patches"', '"efficientnet-lite0"\nweights = "w.pth"\nsize = 32'
    )
    (tmp_path / "r.toml").write_text(recipe)
    assert here("train", tmp_path / "r.toml", "--out", tmp_path / "m").returncode == 0
    (tmp_path / "w.pth").unlink()
    done = here("caption", image, "-m", tmp_path / "m")
    assert done.returncode == 0, done.stderr
    (tmp_path / "m" / "backbone.pth").write_bytes(b"x")
    assert "backbone.pth: damaged: its SHA-256 differs" in complaint("caption", image, "-m", tmp_path / "m")


def test_files_of_format_1_have_other_names(model: Path, image: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(model, tmp_path / "model"))
    (copy / "backbone.json").rename(copy / "pictures.json")
    assert here("caption", image, "-m", copy).stdout == here("caption", image, "-m", model).stdout


def test_a_license_is_shown_once(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = Path(shutil.copytree(model, tmp_path / "model"))
    card = json.loads((copy / "model.json").read_text())
    (copy / "model.json").write_text(json.dumps({**card, "license": "for research only"}))
    for _ in range(2):
        show_license_once(load_model(copy))
    assert capsys.readouterr().err == "model: for research only\n"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        (["task.kind=translate"], 'images are for task.kind = "caption"'),
        (["model.encoder.kind=gru"], 'needs encoder.kind = "regions"'),
        (["data.world.name=phrases"], 'the world "phrases" has no images'),
        (["data.images.captions=x.txt"], "use image files or a world, not both"),
        (["model.copying=true", "tokenizer.shared=true"], "an image has no words to copy"),
        (["model.decoder.step_order=update-attend-generate"], "decoder.gate = true: needs"),
        (["data.images.layer=tail"], "head"),
    ],
)
def test_recipes_that_do_not_fit_are_refused(changes: list[str], error: str, tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(toy_backbones.caption_recipe())
    assert error in complaint("check", tmp_path / "r.toml", *changes)

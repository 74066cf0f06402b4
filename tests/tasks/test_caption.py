"""Captioners from recipe to picture: trained, traced, replayed, changed, measured, shown; bad pictures."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from torch import nn

import eyes
import heedful
from heedful.attention import PLAIN, Look
from heedful.cli import main
from heedful.config import load_recipe
from heedful.config.presets import CAPTIONERS
from heedful.data.batch import Padded, Regions, TextBatch, pad
from heedful.data.tokenizer import END, START, UNK
from heedful.models import Seq2Seq, build
from heedful.record import Trace
from heedful.studies.pointing import pointing
from heedful.tasks.caption import KIND, Captioner, CaptionWords, features_of, open_items, regions, sighted
from heedful.tasks.caption_tune import PixelBatch, TunedTask
from heedful.tasks.folder import open_model
from heedful.tasks.licence import say_once
from heedful.tasks.writing import loss_of, unevenness
from heedful.training.types import Ears
from heedful.vision.pictures import FilePicture, ScenePicture, whole

pytestmark = pytest.mark.usefixtures("as_users_run")
METRICS = ("caption-bleu-4", "caption-bleu-4-raw", "cider", "length-ratio")
WORLD = '[data.world]\nname = "scenes"\ntrain = 24\nvalid = 6\ntest = 6\npixels = 48\n'


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))


def run(*arguments: object) -> int:
    """The command's exit code."""
    with patch.object(sys, "argv", ["heedful", *map(str, arguments)]), pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def trained(folder: Path, preset: str = "caption-soft", epochs: int = 1) -> Path:
    (folder / "recipe.toml").write_text(eyes.seeing(preset, epochs))
    assert run("train", folder / "recipe.toml", "--out", folder / "model") == 0
    return folder / "model"


def photograph(path: Path, number: int = 40) -> Path:
    ScenePicture(number, 1, 96).open().save(path)
    return path


def small(preset: str, tmp_path: Path) -> tuple[Seq2Seq, Any]:
    (tmp_path / "r.toml").write_text(eyes.seeing(preset))
    recipe = load_recipe(tmp_path / "r.toml").recipe
    torch.manual_seed(1)
    return build(recipe.model, 192, 11).double().eval(), recipe


def batch() -> TextBatch:
    torch.manual_seed(2)
    target = pad([[START, 5, 6, END], [START, 7, END], [START, END]])
    return TextBatch(regions(torch.randn(3, 36, 192).double()), target)


@pytest.mark.parametrize("preset", CAPTIONERS)
def test_all_words_at_once_are_what_one_by_one_gives(preset: str, tmp_path: Path) -> None:
    model, _ = small(preset, tmp_path)
    some = batch()
    assert some.target is not None
    with torch.no_grad():
        whole = model.score(some).logits
        state, _ = model.encode(some)
        for t in range(some.target.ids.shape[1] - 1):
            last = some.target.ids[:, t] if t else torch.full((3,), model.first)
            stepped = model.step(state, last, PLAIN)
            state = stepped.state
            apart = (stepped.logits[:, 0] - whole[:, t]).abs()
            assert apart[some.target.keep[:, t + 1]].max() < 1e-10


@pytest.mark.parametrize("preset", CAPTIONERS)
def test_every_captioner_is_trained_traced_and_replayed(preset: str, tmp_path: Path) -> None:
    model, picture = trained(tmp_path, preset), photograph(tmp_path / "p.png")
    reports = [json.loads(line) for line in (model / "metrics.jsonl").read_text().splitlines()]
    assert np.isfinite(reports[-1]["figures"]["loss"])
    assert run("trace", picture, "-m", model, "--replay", "--detail", "full", "-o", tmp_path / "t.json") == 0
    trace = Trace.load(tmp_path / "t.json")
    assert trace.source.image is not None
    assert trace.source.image.grid == (6, 6)
    assert trace.checks is not None
    names = ("score", "softmax", "context", "said", "output")
    assert all((getattr(trace.checks, name) or 0) < 1e-5 for name in names)
    if trace.alignment is not None:
        assert run("show", tmp_path / "t.json", "--view", "photo", "-o", tmp_path / "p.svg") == 0
        words = [token.text for token in trace.target.tokens if token.role == "normal"]
        assert all(word in (tmp_path / "p.svg").read_text() for word in words)


def test_evenness_is_what_loops_make_of_it(tmp_path: Path) -> None:
    torch.manual_seed(1)
    weights = torch.rand(2, 3, 1, 4).softmax(dim=-1)  # caption, word, head, region
    real = torch.tensor([[True, True, False], [True, True, True]])
    wanted = 0.0
    for caption in range(2):
        for region in range(4):
            read = sum(float(weights[caption, t, 0, region]) for t in range(3) if real[caption, t])
            wanted += (1 - read) ** 2
    assert float(unevenness(Look(weights), real)) == pytest.approx(wanted, rel=1e-6)
    model, recipe = small("caption-soft", tmp_path)
    model.train()
    priced = recipe.model_copy(update={"training": recipe.training.model_copy(update={"even": 2.0})})
    assert loss_of(model, batch(), priced).total > loss_of(model, batch(), recipe).total


def test_unknown_words_can_be_left_out_of_the_loss(tmp_path: Path) -> None:
    model, recipe = small("caption-soft", tmp_path)
    model.eval()
    given = batch()
    assert given.target is not None
    ids = given.target.ids.clone()
    ids[0, 2] = UNK
    given = TextBatch(given.source, Padded(ids, given.target.keep))
    left = recipe.model_copy(update={"training": recipe.training.model_copy(update={"unknown": False})})
    whole, less = loss_of(model, given, recipe), loss_of(model, given, left)
    with torch.no_grad():
        scores = model.score(given).logits.log_softmax(dim=-1)
    assert less.tokens == whole.tokens - 1
    assert float((whole.total - less.total).detach()) == pytest.approx(-float(scores[0, 1, UNK]), abs=1e-4)


def test_the_gate_scales_what_is_read(tmp_path: Path) -> None:
    model, _ = small("caption-soft", tmp_path)
    gate = model.decoder.gate
    assert isinstance(gate, nn.Linear)
    some = batch()
    assert isinstance(some.source, Regions)
    turned = TextBatch(regions(some.source.vectors.flip(1)), some.target)  # the mean stays as it was
    with torch.no_grad():
        assert not torch.allclose(model.score(some).logits[:, 1:], some.source.vectors.new_zeros(()))
        gate.weight.zero_()
        gate.bias.fill_(-1e4)  # nothing passes
        shut = model.score(some).logits
        model.decoder.attention.score.v.add_(3.0)  # type: ignore[union-attr,operator]
        assert torch.allclose(shut, model.score(turned).logits)


def test_places_tell_where_in_the_picture_a_region_is(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(eyes.seeing("caption-soft"))
    some = batch()
    assert isinstance(some.source, Regions)
    turned = TextBatch(regions(some.source.vectors.flip(1)), some.target)
    for places in (False, True):
        recipe = load_recipe(tmp_path / "r.toml", [f"model.encoder.places={str(places).lower()}"]).recipe
        model = build(recipe.model, 192, 11).double().eval()
        with torch.no_grad():
            alike = torch.allclose(model.score(some).logits, model.score(turned).logits)
        assert alike is not places  # a look over regions without places knows no order


def test_a_captioner_captions_measures_and_shows_its_mistakes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, picture = trained(tmp_path, epochs=2), photograph(tmp_path / "p.png")
    capsys.readouterr()
    assert run("caption", picture, "-m", model) == 0
    caption = capsys.readouterr().out.strip()
    assert caption
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(picture.read_bytes())))
    assert run("caption", "-m", model) == 0
    assert capsys.readouterr().out.strip() == caption
    assert run("caption", picture, "-m", model, "--json", "--beam", 2, "--n-best", 2) == 0
    assert len(json.loads(capsys.readouterr().out)["outputs"]) == 2
    metrics = [x for name in METRICS for x in ("--metric", name)]
    assert run("evaluate", "-m", model, "--gallery", tmp_path / "g.html", "--json", *metrics) == 0
    names = [metric["name"] for metric in json.loads(capsys.readouterr().out)["metrics"]]
    assert {"BLEU-4", "BLEU-4, no brevity penalty", "CIDEr-D", "length ratio"} <= set(names)
    page = (tmp_path / "g.html").read_text()
    assert page.count("<article>") == 6
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert run("caption", picture, "-m", model, "-o", tmp_path / "drawn.png", "--raw") == 0
    with Image.open(tmp_path / "drawn.png") as drawn:
        assert drawn.width > 300
    monkeypatch.chdir(tmp_path)
    assert run("caption", picture, "-m", model, "--show") == 0
    assert (tmp_path / "p-attention.png").is_file()


def test_a_folder_with_broken_pictures_is_captioned_as_far_as_it_can_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, folder = trained(tmp_path), tmp_path / "pictures"
    folder.mkdir()
    for number in range(5):
        photograph(folder / f"{number}.png", number)
    (folder / "bad.jpg").write_text("no picture")
    (folder / "notes.txt").write_text("not asked for")
    capsys.readouterr()
    assert run("caption", folder, "-m", model) == 1
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 5
    assert "bad.jpg: not a picture that can be read" in said.err
    assert "1 of 6 pictures could not be captioned" in said.err


def test_looking_elsewhere_changes_what_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, picture, out = trained(tmp_path), photograph(tmp_path / "p.png"), tmp_path / "t.json"
    change = ("--set", "onehot:step=0,position=7", "--what-if")
    assert run("trace", picture, "-m", model, *change, "-o", out) == 0
    changed = Trace.load(out)
    assert changed.matrix()[0].argmax() == 7
    assert changed.parent is not None
    assert {found.position for found in changed.whatif} == set(range(36))
    capsys.readouterr()
    assert run("trace", picture, "-m", model, "--set", "source:position=0,text=dog", "-o", out) == 2
    assert "a picture has no words to replace" in capsys.readouterr().err


def test_pointing_is_counted_and_has_baselines(tmp_path: Path) -> None:
    opened = open_model(trained(tmp_path))
    words = opened.words.target
    with torch.no_grad():  # says "a shape" whatever it sees: true of every scene
        output = opened.model.decoder.output
        output.weight.zero_()
        output.bias.fill_(-10.0)
        for token in words.encode("a shape")[:-1]:
            output.bias[token] = 5.0
    items = open_items(opened.recipe, Path())["test"]
    assert pointing(opened, items) == {}, "a a a: nothing is spoken of"
    with patch.object(type(words), "decode", lambda *_: "a shape a shape"):
        found = pointing(opened, items)
    assert found["words"] == sum(row["count"] for row in found["by word"].values())
    assert 0 <= found["pointing"] == found["pointing, content words"] <= 1
    assert "pointing, relations and places" not in found, "none was said"
    with patch.object(type(words), "decode", lambda *_: "a shape above all"):
        found = pointing(opened, items)
    assert set(found["by word"]) == {"shape", "above", "all"}
    assert found["pointing, content words"] == found["by word"]["shape"]["pointing"]
    others = [found["by word"][word] for word in ("above", "all")]
    share = sum(row["count"] * row["pointing"] for row in others) / sum(row["count"] for row in others)
    assert found["pointing, relations and places"] == pytest.approx(share)
    assert 0 < found["weight in region, uniform"] < 0.5


def test_what_is_for_lines_refuses_a_captioner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = trained(tmp_path)
    capsys.readouterr()
    for command in (["translate"], ["bench"]):
        assert run(*command, "-m", model) == 2
        assert "model was trained to caption; use heedful caption" in capsys.readouterr().err


def test_a_backbone_learns_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe, picture = tmp_path / "recipe.toml", photograph(tmp_path / "p.png")
    recipe.write_text(eyes.seeing().replace("eyes:Patches", "eyes:Learner"))
    assert run("train", recipe, "--out", tmp_path / "kept") == 0
    tuned = ("data.pictures.tuned=true", "training.start_from=kept", "training.epochs=2")
    assert run("train", recipe, *tuned, "--out", tmp_path / "tuned") == 0
    assert "begun with kept" in capsys.readouterr().err
    before, after = eyes.Learner().net.state_dict(), load_file(tmp_path / "tuned" / "model.safetensors")
    assert (before["0.weight"] - after["eyes.net.0.weight"]).abs().max() > 1e-3
    assert torch.equal(before["1.running_mean"], after["eyes.net.1.running_mean"])
    model: Captioner = open_model(tmp_path / "tuned")
    image = FilePicture(picture).open()
    mine = sighted(model)(whole(image, eyes.SIDE)[None])
    assert not torch.allclose(mine, eyes.Learner()(whole(image, eyes.SIDE)[None]))
    assert run("caption", picture, "-m", tmp_path / "tuned") == 0
    assert run("evaluate", "-m", tmp_path / "tuned") == 0
    kept, tuned_sight = (features_of(open_model(tmp_path / name)) for name in ("kept", "tuned"))
    assert kept.key != tuned_sight.key, "what other eyes saw is not looked at"
    one = FilePicture(picture)
    for features in (kept, tuned_sight):
        features.extract([one])
    assert not torch.equal(kept.of([one]), tuned_sight.of([one]))
    capsys.readouterr()
    assert run("evaluate", "-m", tmp_path / "kept", "-m", tmp_path / "tuned") == 2
    assert "see by different backbones" in capsys.readouterr().err
    assert (
        run("train", recipe, *tuned[:1], "data.pictures.backbone=eyes:Patches", "--out", tmp_path / "x") == 2
    )
    assert "eyes:Patches has no network that could learn" in capsys.readouterr().err
    assert run("train", recipe, *tuned, "model.decoder.hidden=10", "--out", tmp_path / "x") == 2
    assert "kept is of another shape" in capsys.readouterr().err


def test_gradients_go_back_to_the_pixels_filters(tmp_path: Path) -> None:
    """One step by hand: the loss of captions through the eyes is that of maps made beforehand."""
    (tmp_path / "r.toml").write_text(
        eyes.seeing(pictures=6)
        .replace("eyes:Patches", "eyes:Learner")
        .replace("[data.pictures]", "[data.pictures]\ntuned = true")
    )
    recipe = load_recipe(tmp_path / "r.toml").recipe
    started = KIND.start(recipe, tmp_path, None, Ears())
    task, words = started.task, started.words
    assert isinstance(task, TunedTask)
    assert isinstance(words, CaptionWords)
    model = KIND.build(recipe, words)
    batch = next(task.batches(1))
    assert isinstance(batch, PixelBatch)
    loss = task.loss(model, batch)
    maps = eyes.Learner().maps(batch.pictures)[batch.which]
    plain = loss_of(model, TextBatch(regions(maps), batch.target), recipe)
    torch.testing.assert_close(loss.total, plain.total)
    loss.total.backward()
    slope = model.get_parameter("eyes.net.0.weight").grad
    assert slope is not None
    assert float(slope.abs().sum()) > 0
    halves = [batch.rows(0, 2), batch.rows(1, 2)]
    whole_loss = sum(float(task.loss(model, half).total.detach()) for half in halves)
    assert whole_loss == pytest.approx(float(loss.total.detach()), rel=1e-5)


def test_a_captioner_in_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, picture = trained(tmp_path), photograph(tmp_path / "p.png")
    capsys.readouterr()
    assert run("caption", picture, "-m", model) == 0
    said = capsys.readouterr().out.strip()
    ours = heedful.load(model)
    assert ours(picture) == said
    assert ours([str(picture)] * 2, beam=1) == [said, said]
    assert ours.trace(str(picture)).target.text == said


def test_another_backbone_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, picture = trained(tmp_path), photograph(tmp_path / "p.png")
    told = json.loads((model / "pictures.json").read_text())
    (model / "pictures.json").write_text(json.dumps({**told, "fingerprint": "other"}))
    assert run("caption", picture, "-m", model) == 2
    assert "was trained with other weights, or another version, of eyes:Patches" in capsys.readouterr().err
    (model / "pictures.json").write_text("{}")
    assert run("caption", picture, "-m", model) == 2
    assert "pictures.json: damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["task.kind=translate"], "captions, and only they"),
        (["model.encoder.kind=gru"], "captions, and only they"),
        (["data.world.name=phrases"], 'the world "phrases" has no pictures'),
        (["data.pictures.captions=x.txt"], "give pictures or a world, not both"),
        (["model.copying=true", "tokenizer.shared=true"], "a picture has no words to copy"),
        (["model.decoder.order=update-look-generate"], "decoder.gate = true: belongs to"),
        (["data.pictures.layer=tail"], "head"),
    ],
)
def test_recipes_that_cannot_be_are_refused(
    changes: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.toml").write_text(eyes.seeing())
    assert run("check", tmp_path / "r.toml", *changes) == 2
    assert said in capsys.readouterr().err


def test_broken_training_pictures_are_refused_or_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = []
    for number in range(12):
        photograph(tmp_path / f"{number}.png", number)
        lines += [f"{number}.png#{k}\ta thing is here\n" for k in range(2)]
    (tmp_path / "3.png").write_bytes(b"no picture")
    (tmp_path / "c.txt").write_text("".join(lines))
    text = eyes.seeing().replace(WORLD, "")
    text = text.replace("[data.pictures]", '[data.pictures]\nfolder = "."\ncaptions = "c.txt"')
    (tmp_path / "r.toml").write_text(text)
    arguments = ("train", tmp_path / "r.toml", "data.split_valid=0.3", "--out", tmp_path / "m")
    assert run(*arguments) == 2
    said = capsys.readouterr().err
    assert "pictures cannot be used" in said
    assert "3.png: not a picture that can be read" in said
    assert not (tmp_path / "m").exists()
    assert run(*arguments, "data.broken=skip") == 0


def test_a_licence_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = trained(tmp_path)
    card = json.loads((model / "model.json").read_text())
    (model / "model.json").write_text(json.dumps({**card, "licence": "for research only"}))
    capsys.readouterr()
    for _ in range(2):
        say_once(open_model(model))
    assert capsys.readouterr().err == "model: for research only\n"

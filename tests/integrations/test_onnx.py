"""Exports to ONNX compute what the model computes: the same tokens, and the same weights at every site."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

import onnx

import heedful
from command_line import complaint, here
from heedful.config import Recipe, TokenizerConfig
from heedful.data.labels import Labels
from heedful.data.tokenizer import Tokenizer
from heedful.errors import ModelError
from heedful.integrations.onnx.export import check_exportable, export_onnx
from heedful.integrations.onnx.greedy import OnnxModel
from heedful.models import build_classifier, build_seq2seq
from heedful.tasks.base import LoadedModel
from heedful.tasks.caption.assets import BackboneInfo, CaptionAssets
from heedful.tasks.classify.assets import ClassifierAssets
from heedful.tasks.seq2seq.assets import Seq2SeqAssets
from small_captioners import build_captioner

LINES = ["the cat sleeps on the old chair", "a dog eats the red fish", "le chat dort"]
TRANSFORMER = {"layers": 1, "heads": 2, "feedforward": 8}
SLOW = pytest.mark.slow  # torch needs some seconds per graph
OTHERS = ("transformer", "rnnsearch", "rnnsearch-paper", "cgru", "caption-soft")


def small_model(preset: str, folder: Path) -> LoadedModel[Any, Any]:
    """Return a random model; larger weights than a new model's make outputs of several different tokens."""
    tokenizer = Tokenizer.train(LINES, TokenizerConfig())
    if preset.startswith("caption"):
        _, recipe = build_captioner(preset, folder, "model.embedding=8", "model.decoder.hidden=8")
        model: Any = build_seq2seq(recipe.model, 6, len(tokenizer))
        assets: Any = CaptionAssets(tokenizer, BackboneInfo(6, (2, 3), "none"))
    else:
        task, world = ("classify", "moods") if preset.startswith("classify") else ("translate", "phrases")
        sizes = {"hidden": 8, **(TRANSFORMER if preset == "transformer" else {})}
        stacks = ("encoder", "decoder") if task == "translate" else ("encoder",)
        sections = {f"model.{stack}.{key}": value for stack in stacks for key, value in sizes.items()}
        settings = {"task.kind": task, "data.world.name": world, "model.preset": preset, "model.embedding": 8}
        recipe = Recipe.from_dict({**settings, **sections})
        if task == "classify":
            model = build_classifier(recipe.model, len(tokenizer), 2)
            assets = ClassifierAssets(tokenizer, Labels([("bad", 1), ("good", 1)]))
        else:
            model = build_seq2seq(recipe.model, len(tokenizer), len(tokenizer))
            assets = Seq2SeqAssets(tokenizer, tokenizer)
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return LoadedModel("small", recipe, assets, model.eval(), {}, Path())


@pytest.fixture
def no_shape_checks(as_users_run: None) -> None:
    """Shapes are symbols while a model is exported, which the shape checker of the tests does not know."""


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize(
    "preset",
    [
        "luong",
        "classify-learned",
        *(pytest.param(preset, marks=SLOW) for preset in OTHERS),
    ],
)
def test_outputs_and_weights_are_the_same(preset: str, tmp_path: Path) -> None:
    loaded = small_model(preset, tmp_path)
    report = export_onnx(loaded, tmp_path / "model")
    assert report.same == report.compared == 20
    assert report.sites == len(loaded.model.sites) > 0
    assert report.weights < 1e-4
    assert report.probabilities < 1e-4
    assert "20 of 20 outputs are the same" in str(report)
    manifest = json.loads((tmp_path / "model" / "onnx.json").read_text())
    names = {"model": "model.onnx"} if "classify" in preset else {"encoder": "encoder.onnx", "decoder": "decoder.onnx"}
    assert manifest["graphs"] == names
    assert manifest["max_length"] == ({"source": 512, "target": 512} if preset == "transformer" else {})
    for file in names.values():
        onnx.checker.check_model(onnx.load(tmp_path / "model" / file))
    outputs = [o.name for session in OnnxModel(tmp_path / "model").sessions.values() for o in session.get_outputs()]
    assert [f"weights.{site.id}" for site in loaded.model.sites if f"weights.{site.id}" not in outputs] == []
    if preset == "luong":
        check_batches(loaded, tmp_path / "model")


def check_batches(loaded: LoadedModel[Any, Any], folder: Path) -> None:
    """Batches of another size, with padding, have the outputs of their rows."""
    model = OnnxModel(folder)
    ids = loaded.assets.source.encode_all(LINES)
    padded = np.zeros((3, max(map(len, ids))), dtype=np.int64)
    for row, values in zip(padded, ids, strict=True):
        row[: len(values)] = values
    together = model.generate(padded, 12)
    for values, output in zip(ids, together, strict=True):
        (alone,) = model.generate(np.array([values]), 12)
        assert output.tokens == alone.tokens
        assert np.allclose(output.log_probabilities, alone.log_probabilities, atol=1e-5)
        weights = np.stack(output.weights["cross"])
        assert np.allclose(weights[:, :, : len(values)], np.stack(alone.weights["cross"]), atol=1e-6)
        assert weights[:, :, len(values) :].max(initial=0) == 0


@pytest.mark.parametrize(
    ("preset", "settings", "message"),
    [
        ("conv-rnn", {}, "an encoder of kind conv cannot"),
        ("abs", {}, "an encoder of kind embedding cannot"),
        ("rnnsearch", {"model.attention.placement": "hard", "model.attention.hard_inference": "sample"}, "sampled"),
        ("rnnsearch", {"model.attention.score": "location"}, "location scores"),
    ],
)
def test_what_cannot_be_exported_is_named(preset: str, settings: dict[str, str], message: str) -> None:
    recipe = Recipe.from_dict({"data.world.name": "phrases", "model.preset": preset, **settings})
    with pytest.raises(ModelError, match=message):
        check_exportable("small", build_seq2seq(recipe.model, 9, 9))


def test_models_of_other_tasks_and_full_folders_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "model"
    message = complaint("export", "-m", "films", "-o", str(folder))
    assert "films: only translators, captioners and classifiers can be exported to ONNX" in message
    lines = ("--lines", str(lines_file(tmp_path)))
    assert "captioner is compared on random features" in complaint("export", "-m", "photos", *lines, "-o", str(folder))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert "not empty" in complaint("export", "-m", "intents", "-o", str(tmp_path / "full"))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert "pip install 'heedful[onnx]'" in complaint("export", "-m", "intents", "-o", str(folder))
    assert [path.name for path in tmp_path.iterdir() if "model" in path.name] == []


def lines_file(folder: Path) -> Path:
    """Write a file of inputs."""
    path = folder / "lines.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


def test_a_failed_export_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise torch.onnx.errors.OnnxExporterError("step 1") from ValueError("a reason\nand more")

    monkeypatch.setattr("torch.onnx.export", fail)
    with pytest.raises(ModelError, match=r"small: torch cannot export this model: a reason$"):
        export_onnx(small_model("luong", tmp_path), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@SLOW
@pytest.mark.usefixtures("no_shape_checks")
def test_the_command_exports_the_bundled_classifier(tmp_path: Path) -> None:
    done = here("export", "-m", "intents", "--lines", str(lines_file(tmp_path)), "-o", str(tmp_path / "model"))
    assert done.returncode == 0, done.stderr
    assert "3 of 3 outputs are the same, weights at 1 sites" in done.stdout
    assert done.stderr == ""
    labels = json.loads((tmp_path / "model" / "onnx.json").read_text())["labels"]
    own = heedful.load("intents")
    (logits, weights) = OnnxModel(tmp_path / "model").classify(np.array([own.loaded.assets.source.encode(LINES[0])]))
    assert labels[int(logits.argmax())] == own(LINES[0])
    assert weights["pool"].sum() == pytest.approx(own.loaded.model.sites[0].heads, abs=1e-4)


@SLOW
@pytest.mark.usefixtures("no_shape_checks")
def test_the_loop_of_the_docs_translates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = export_onnx(heedful.load("en-fr").loaded, tmp_path / "model", LINES[:2])
    assert (report.same, report.compared) == (2, 2)
    page = Path(__file__).parent.parent.parent / "docs" / "howto" / "export.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    exec(code, {"OnnxModel": OnnxModel, "folder": tmp_path / "model"})
    assert capsys.readouterr().out.startswith("Le chat dort.\n(")

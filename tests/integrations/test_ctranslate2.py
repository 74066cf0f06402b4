"""Exports to CTranslate2 generate what the model generates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("ctranslate2")

import heedful
from command_line import complaint
from heedful.config import Recipe, TokenizerConfig
from heedful.data.tokenizer import Tokenizer
from heedful.errors import ModelError
from heedful.integrations.ctranslate2 import export_ctranslate2
from heedful.models import build_seq2seq
from heedful.tasks.base import LoadedModel
from heedful.tasks.seq2seq.assets import Seq2SeqAssets

LINES = ["the cat sleeps on the old chair", "a dog eats the red fish", "le chat dort"]


def translator(norm: str, tied: str) -> LoadedModel[Any, Any]:
    sizes = {"hidden": 32, "heads": 4, "layers": 2, "feedforward": 64, "norm": norm}
    sections = {f"model.{stack}.{key}": value for stack in ("encoder", "decoder") for key, value in sizes.items()}
    model = {"model.preset": "transformer", "model.embedding": 32, "model.tie_embeddings": tied, **sections}
    recipe = Recipe.from_dict({"data.world.name": "phrases", "tokenizer.shared": True, **model})
    tokenizer = Tokenizer.train(LINES, TokenizerConfig())
    torch.manual_seed(3)
    built = build_seq2seq(recipe.model, len(tokenizer), len(tokenizer)).eval()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
    return LoadedModel("small", recipe, Seq2SeqAssets(tokenizer, tokenizer), built, {}, Path())


@pytest.mark.parametrize(("norm", "tied"), [("post", "none"), ("pre", "all")])
def test_greedy_outputs_are_the_same(norm: str, tied: str, tmp_path: Path) -> None:
    report = export_ctranslate2(translator(norm, tied), tmp_path / "model")
    assert report.same == report.compared == 20
    assert (tmp_path / "model" / "model.bin").is_file()
    assert (tmp_path / "model" / "source.tokenizer.json").is_file()
    assert "20 of 20 greedy outputs are the same" in str(report)


def test_what_cannot_be_exported_says_why(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="only Transformers"):
        export_ctranslate2(heedful.load("en-fr").loaded, tmp_path / "model")
    assert not (tmp_path / "model").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(ModelError, match="not empty"):
        export_ctranslate2(translator("pre", "all"), tmp_path / "full")
    message = complaint("export", "--to", "ctranslte2", "-o", str(tmp_path / "model"))
    assert 'did you mean "ctranslate2"?' in message

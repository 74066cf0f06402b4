"""Captioners are measured like the others: regions are taken away as words are."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import eyes
from heedful.config import load_recipe
from heedful.data.tokenizer import END, Tokenizer
from heedful.models import build
from heedful.studies.measure import Asked, items_of, measure
from heedful.studies.measure_caption import FIRST, CaptionSubject
from heedful.tasks.caption import Captioner, CaptionWords, Sight, open_items
from heedful.tasks.folder import open_model, save_model
from heedful.vision.backbone import open_backbone


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Captioner:
    """A captioner with large random weights."""
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "r.toml").write_text(eyes.seeing())
    recipe = load_recipe(tmp_path / "r.toml").recipe
    items = open_items(recipe, tmp_path)["train"]
    words = Tokenizer.learn([c for item in items for c in item.captions], recipe.tokenizer)
    torch.manual_seed(3)
    model = build(recipe.model, 192, len(words))
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.4, 0.4)
    sight = Sight.of(open_backbone("eyes:Patches"))
    save_model(tmp_path / "m", recipe, CaptionWords(words, sight), model, {})
    return open_model(tmp_path / "m")


def test_everything_is_measured(opened: Captioner) -> None:
    items = items_of(opened, [], "test", None, 0).pairs
    found = measure(opened, items, Asked(steps=1))
    assert found["unit"] == "pictures"
    assert 0 < found["looks"]["entropy ratio"] <= 1
    tests = found["tests"]
    assert tests["decisions"] == len(items)
    assert set(tests) >= {"correlation", "permutation", "uniform", "erasure", "words", "outputs"}
    again = measure(opened, items, Asked(steps=1))
    assert again == found, "the same seed measures the same"


def test_a_region_taken_away_is_not_read(opened: Captioner) -> None:
    items = open_items(opened.recipe, Path())["test"][:2]
    subject = CaptionSubject(opened, items)
    whole = [*range(FIRST, FIRST + 36), END]
    assert subject.sources[0] == whole
    same = subject.again([(0, 0), (1, 0)], [whole, whole])
    without = subject.again([(0, 0), (1, 0)], [[*whole[:7], *whole[8:]], [FIRST, END]])
    assert not torch.allclose(same, without)
    read = subject.corpus.read([1], [[FIRST + 4, FIRST + 9, END]])
    assert read.keep.nonzero()[:, 1].tolist() == [4, 9]
    (probe,) = subject.probes([{0}, set()])
    assert torch.allclose(probe.p[0], same[0], atol=1e-5)

"""`heedful measure` of captioners: image regions are erased as words are."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import toy_backbones
from heedful.analysis.faithfulness import FaithfulnessOptions
from heedful.analysis.measure import load_items, measure
from heedful.config import load_recipe
from heedful.data.images.backbone import open_backbone
from heedful.data.tokenizer import END, Tokenizer
from heedful.models import build_seq2seq
from heedful.tasks.caption.assets import BackboneInfo, CaptionAssets, LoadedCaptioner
from heedful.tasks.caption.data import open_items
from heedful.tasks.caption.measure import FIRST_REGION, CaptionProbeTarget
from heedful.tasks.model_folder import load_model, save_model


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoadedCaptioner:
    """A captioner with large random weights."""
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "r.toml").write_text(toy_backbones.caption_recipe())
    recipe = load_recipe(tmp_path / "r.toml").recipe
    items = open_items(recipe, tmp_path)["train"]
    words = Tokenizer.train([c for item in items for c in item.captions], recipe.tokenizer)
    torch.manual_seed(3)
    model = build_seq2seq(recipe.model, 192, len(words))
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.4, 0.4)
    backbone_info = BackboneInfo.of(open_backbone("toy-patches"))
    save_model(tmp_path / "m", recipe, CaptionAssets(words, backbone_info), model, {})
    return load_model(tmp_path / "m")


def test_the_report_is_complete_and_reproducible(loaded: LoadedCaptioner) -> None:
    items = load_items(loaded, [], "test", None, 0).items
    report = measure(loaded, items, FaithfulnessOptions(steps=1))
    assert report["unit"] == "images"
    assert 0 < report["attention"]["entropy_ratio"] <= 1
    tests = report["faithfulness"]
    assert tests["decisions"] == len(items)
    assert set(tests) >= {"correlation", "permutation", "uniform", "erasure", "input_erasure", "outputs"}
    assert measure(loaded, items, FaithfulnessOptions(steps=1)) == report


def test_an_erased_region_is_not_attended_to(loaded: LoadedCaptioner) -> None:
    items = open_items(loaded.recipe, Path())["test"][:2]
    target = CaptionProbeTarget(loaded, items)
    regions = [*range(FIRST_REGION, FIRST_REGION + 36), END]
    assert target.sources[0] == regions
    unchanged = target.predict_from([(0, 0), (1, 0)], [regions, regions])
    erased = target.predict_from([(0, 0), (1, 0)], [[*regions[:7], *regions[8:]], [FIRST_REGION, END]])
    assert not torch.allclose(unchanged, erased)
    encoded = target.corpus.encode([1], [[FIRST_REGION + 4, FIRST_REGION + 9, END]])
    assert encoded.keep.nonzero()[:, 1].tolist() == [4, 9]
    (probe,) = target.probes([{0}, set()])
    assert torch.allclose(probe.probabilities[0], unchanged[0], atol=1e-5)

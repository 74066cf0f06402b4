"""Small captioners, batches and images that several tests share."""

from __future__ import annotations

from pathlib import Path

import torch

import toy_backbones
from heedful.config import Recipe, load_recipe
from heedful.data.batch import TextBatch, pad
from heedful.data.images.files import SceneImage
from heedful.data.tokenizer import END, START
from heedful.models import Seq2Seq, build_seq2seq
from heedful.tasks.caption.assets import all_regions


def save_scene(path: Path, number: int = 40) -> Path:
    """Save an image of the scenes world."""
    SceneImage(number, 1, 96).open().save(path)
    return path


def build_captioner(preset: str, tmp_path: Path, *settings: str) -> tuple[Seq2Seq, Recipe]:
    """Return an untrained captioner of a preset, for 36 regions of width 192, and its recipe."""
    (tmp_path / "r.toml").write_text(toy_backbones.caption_recipe(preset))
    recipe = load_recipe(tmp_path / "r.toml", list(settings)).recipe
    torch.manual_seed(1)
    return build_seq2seq(recipe.model, 192, 11).double().eval(), recipe


def make_batch() -> TextBatch:
    """Return three images with captions of different lengths."""
    torch.manual_seed(2)
    target = pad([[START, 5, 6, END], [START, 7, END], [START, END]])
    return TextBatch(all_regions(torch.randn(3, 36, 192).double()), target)

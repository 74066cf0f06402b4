"""Every preset of an encoder-decoder can memorize a few pairs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from heedful.config import WorldConfig
from heedful.config.presets import ENCODER_DECODERS
from heedful.data.pairs import world_pairs
from heedful.models import build_seq2seq
from heedful.tasks.seq2seq.assets import Seq2SeqAssets
from heedful.tasks.seq2seq.training import Seq2SeqTraining
from heedful.training.loop import train
from small_presets import small_recipe

SLOW_START = ("luong", "luong-local")  # because of input feeding


def memorize(name: str, n_pairs: int, width: int, epochs: int, folder: Path) -> float:
    """Train a preset and return its exact match on the training pairs."""
    world = WorldConfig(train=n_pairs, valid=1, test=1, max_words=5)
    epochs *= 2 if name in SLOW_START else 1
    recipe = small_recipe(name, world, width, epochs=epochs, batch_tokens=400, validate_every=2 * epochs)
    pairs = world_pairs(world)["train"]
    training = Seq2SeqTraining(recipe, {"train": pairs, "valid": pairs}, Seq2SeqAssets.train(pairs, recipe))
    torch.manual_seed(1)
    model = build_seq2seq(recipe.model, len(training.assets.source), len(training.assets.target))
    return train(training, model, recipe.training, folder).best.metrics["exact"]


@pytest.mark.usefixtures("as_users_run")  # shapes are checked elsewhere
@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_every_preset_memorizes_12_pairs(name: str, tmp_path: Path) -> None:
    assert memorize(name, 12, 32, 80, tmp_path) >= 90


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_every_preset_memorizes_32_pairs(name: str, tmp_path: Path) -> None:
    assert memorize(name, 32, 48, 150, tmp_path) >= 90

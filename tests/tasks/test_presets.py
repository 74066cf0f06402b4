"""Every preset can learn 32 pairs by heart."""

from __future__ import annotations

from pathlib import Path

import pytest

from heedful.config import WorldConfig
from heedful.config.presets import PRESETS
from heedful.data.readers import world_pairs
from heedful.models import build
from heedful.tasks.text import TextTask, learn
from heedful.training.loop import train
from presets import recipe

EPOCHS = {"luong": 300, "luong-local": 300}  # what is fed back makes them slow to start


@pytest.mark.usefixtures("as_users_run")  # shapes are checked elsewhere; here they cost minutes
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_learns_32_pairs_by_heart(name: str, tmp_path: Path) -> None:
    world = WorldConfig(train=32, valid=1, test=1, max_words=6)
    epochs = EPOCHS.get(name, 150)
    plan = recipe(name, world, epochs=epochs, batch_tokens=400, validate_every=2 * epochs)
    pairs = world_pairs(world)["train"]
    task = TextTask(plan, {"train": pairs, "valid": pairs}, learn(pairs, plan))
    model = build(plan.model, len(task.words.source), len(task.words.target))
    outcome = train(task, model, plan.training, tmp_path)
    assert outcome.best.figures["exact"] >= 0.9, [r.figures for r in outcome.reports]

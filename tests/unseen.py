"""What it takes to translate sentences never seen; two files ask for it, so that two cores share the work."""

from __future__ import annotations

from pathlib import Path

import torch

from heedful.config import WorldConfig
from heedful.data.readers import world_pairs
from heedful.models import build
from heedful.tasks.text import TextTask, learn
from heedful.training.loop import train
from presets import recipe

SLOW_TO_START = ("stacked-lstm", "luong", "luong-local", "conv-rnn", "conv-conv", "abs")
BAR = 0.99  # exact, on short sentences never seen
QUICK = ("bigru-gru", "cgru", "transformer")
WITHOUT_ATTENTION = ("seq2seq", "seq2seq-every-step")  # they reach what they can: LOG.md


def translates(name: str, folder: Path) -> None:
    """Train the preset on fresh pairs, once over them, and hold it to the bar."""
    seen = 250_000 if name in QUICK else 1_000_000 if name in SLOW_TO_START else 400_000
    world = WorldConfig(train=seen, valid=1_000, test=1, max_words=5)
    rate = {"transformer": 0.002, "conv-conv": 0.002, "abs": 0.003}.get(name, 0.005)
    plan = recipe(name, world, 96, epochs=1, batch_tokens=300, rate=rate)
    pairs = world_pairs(world)
    task = TextTask(plan, pairs, learn(pairs["train"], plan))
    torch.manual_seed(1)
    model = build(plan.model, len(task.words.source), len(task.words.target))
    outcome = train(task, model, plan.training, folder)
    exact = outcome.best.figures["exact"]
    assert exact >= (0.5 if name in WITHOUT_ATTENTION else BAR), exact

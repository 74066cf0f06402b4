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

# pairs seen once, in thousands: some are slow to start, ABS has no recurrence to help it
SEEN = {"stacked-lstm": 1_000, "luong": 2_000, "luong-local": 2_000, "conv-rnn": 1_000, "conv-conv": 1_000}
SEEN |= {"abs": 2_000, "bigru-gru": 250, "cgru": 250, "transformer": 250}
RATES = {"transformer": 0.002, "conv-conv": 0.002, "abs": 0.003, "luong": 0.003, "luong-local": 0.003}
BAR = 0.99  # exact, on short sentences never seen
QUICK = ("bigru-gru", "cgru", "transformer")
WITHOUT_ATTENTION = ("seq2seq", "seq2seq-every-step")  # they reach what they can: LOG.md


def translates(name: str, folder: Path) -> None:
    """Train the preset on fresh pairs, once over them, and hold it to the bar."""
    seen = 1_000 * SEEN.get(name, 400)
    world = WorldConfig(train=seen, valid=1_000, test=1, max_words=5)
    plan = recipe(name, world, 96, epochs=1, batch_tokens=300, rate=RATES.get(name, 0.005))
    pairs = world_pairs(world)
    task = TextTask(plan, pairs, learn(pairs["train"], plan))
    torch.manual_seed(1)
    model = build(plan.model, len(task.words.source), len(task.words.target))
    outcome = train(task, model, plan.training, folder)
    exact = outcome.best.figures["exact"]
    assert exact >= (0.5 if name in WITHOUT_ATTENTION else BAR), exact

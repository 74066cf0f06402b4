"""Train presets on the phrase world until they translate sentences they never saw."""

from __future__ import annotations

from pathlib import Path

import torch

from heedful.config import WorldConfig
from heedful.data.pairs import world_pairs
from heedful.models import build_seq2seq
from heedful.tasks.seq2seq.assets import Seq2SeqAssets
from heedful.tasks.seq2seq.training import Seq2SeqTraining
from heedful.training.loop import train
from small_presets import small_recipe

# thousands of training pairs, each used once; models without recurrence or with slow starts need more
THOUSAND_PAIRS = {"stacked-lstm": 1_000, "luong": 2_000, "luong-local": 2_000, "conv-rnn": 1_000, "conv-conv": 1_000}
THOUSAND_PAIRS |= {"abs": 2_000, "bigru-gru": 250, "cgru": 250, "transformer": 250}
LEARNING_RATES = {"transformer": 0.002, "conv-conv": 0.002, "abs": 0.003, "luong": 0.003, "luong-local": 0.003}
MIN_EXACT = 99  # percent of short unseen sentences
WITHOUT_ATTENTION = ("seq2seq", "seq2seq-every-step")  # they reach less: docs/lab-notebook.md


def check_generalization(name: str, folder: Path) -> None:
    """Train a preset for one epoch, and check its exact matches on unseen sentences."""
    n_pairs = 1_000 * THOUSAND_PAIRS.get(name, 400)
    world = WorldConfig(train=n_pairs, valid=1_000, test=1, max_words=5)
    recipe = small_recipe(name, world, 96, epochs=1, batch_tokens=300, learning_rate=LEARNING_RATES.get(name, 0.005))
    pairs = world_pairs(world)
    task = Seq2SeqTraining(recipe, pairs, Seq2SeqAssets.train(pairs["train"], recipe))
    torch.manual_seed(1)
    model = build_seq2seq(recipe.model, len(task.assets.source), len(task.assets.target))
    outcome = train(task, model, recipe.training, folder)
    exact = outcome.best.metrics["exact"]
    assert exact >= (50 if name in WITHOUT_ATTENTION else MIN_EXACT), exact

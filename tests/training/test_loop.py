"""The loop: it learns, it repeats exactly, and it stops at a loss that is no number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from heedful.config import (
    AttentionConfig,
    DataConfig,
    DecoderConfig,
    EncoderConfig,
    ModelConfig,
    Recipe,
    TrainingConfig,
    WorldConfig,
)
from heedful.data.batch import TextBatch
from heedful.data.readers import TextPair
from heedful.errors import TrainingError
from heedful.models import Seq2Seq, build
from heedful.tasks.text import TextTask, learn
from heedful.training import Loss
from heedful.training.loop import train

LETTERS = "a b c d e f g".split()
PAIRS = [TextPair(f"{x} {y}", f"{y} {x}") for x in LETTERS for y in LETTERS]


def task(**training: object) -> tuple[TextTask, Seq2Seq]:
    recipe = Recipe(
        data=DataConfig(world=WorldConfig()),
        model=ModelConfig(
            embedding=16,
            dropout=0.0,
            encoder=EncoderConfig(hidden=16),
            decoder=DecoderConfig(hidden=32),
            attention=AttentionConfig(hidden=16),
        ),
        training=TrainingConfig.model_validate(
            {"epochs": 3, "batch_tokens": 40, "rate": 0.01, "warmup": 5, **training}
        ),
    )
    words = learn(PAIRS, recipe)
    torch.manual_seed(recipe.training.seed)
    model = build(recipe.model, len(words.source), len(words.target))
    return TextTask(recipe, {"train": PAIRS, "valid": PAIRS[:9]}, words), model


def test_it_learns_and_writes_down_what_it_measured(tmp_path: Path) -> None:
    job, model = task(epochs=30, smoothing=0.1)
    reports = train(job, model, job.recipe.training, tmp_path)
    assert reports[-1].figures["exact"] == 1.0
    assert reports[-1].figures["loss"] < 0.2 * reports[0].figures["loss"]
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == list(range(1, 31))


def test_the_same_seed_gives_the_same_weights(tmp_path: Path) -> None:
    weights = []
    for _ in range(2):
        job, model = task()
        train(job, model, job.recipe.training, tmp_path)
        weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert torch.equal(*weights)


def test_a_loss_that_is_no_number_stops_it_in_words(tmp_path: Path) -> None:
    class Broken(TextTask):
        def loss(self, model: Seq2Seq, batch: TextBatch) -> Loss:
            good = super().loss(model, batch)
            return Loss(good.total * float("nan"), good.tokens)

    job, model = task()
    job.__class__ = Broken
    with pytest.raises(TrainingError, match=r"the loss became nan at step 1; a lower training.rate may help"):
        train(job, model, job.recipe.training, tmp_path)


def test_padding_and_batching_do_not_change_the_loss() -> None:
    job, model = task()
    model.eval()

    def total(batches: Iterator[TextBatch]) -> tuple[float, int]:
        losses = [job.loss(model, batch) for batch in batches]
        return sum(float(loss.total.detach()) for loss in losses), sum(loss.tokens for loss in losses)

    small_batches = total(job.batches(1))
    job.buckets.budget = 10_000
    large_batches = total(job.batches(1))
    assert large_batches[0] == pytest.approx(small_batches[0], rel=1e-5)
    assert large_batches[1] == small_batches[1]
    assert small_batches[1] == sum(len(p.target.split()) + 1 for p in PAIRS)

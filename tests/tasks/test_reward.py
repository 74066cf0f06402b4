"""Captioners that learn from their own captions: what is earned, and what that does to the weights."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from torch import nn

import eyes
from heedful.config import load_recipe
from heedful.data.batch import Regions, TextBatch, pad
from heedful.data.tokenizer import END, START
from heedful.errors import ConfigError
from heedful.evaluation.captions import Cider
from heedful.tasks.caption import KIND, regions
from heedful.tasks.caption_reward import RewardTask
from heedful.tasks.folder import open_model
from heedful.training.types import Ears
from test_cli import heedful

REWARD = ("training.reward=cider", "training.draws=4", "training.start_from=model")


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe, and beside it a captioner that was trained on given captions."""
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(Path(eyes.__file__).parent), prepend=os.pathsep)
    path = tmp_path / "recipe.toml"
    path.write_text(eyes.seeing())
    done = heedful("train", path, "--out", tmp_path / "model")
    assert done.returncode == 0, done.stderr
    return path


def literally(
    task: RewardTask, model: nn.Module, batch: TextBatch, drawn: Sequence[tuple[int, ...]]
) -> float:
    """Caption by caption: how much more it earned than its picture's others, times -log p."""
    assert batch.target is not None
    assert isinstance(batch.source, Regions)
    words = task.words.target
    cider = Cider([[f"{caption} </s>" for caption in item.captions] for item in task.train])
    total = 0.0
    for at, row in enumerate(batch.target.ids[:, 0].tolist()):
        mine = drawn[4 * at : 4 * at + 4]
        earned = [cider.score(row, words.decode(t) + (" </s>" if t[-1] == END else "")) for t in mine]
        for k, tokens in enumerate(mine):
            alone = TextBatch(regions(batch.source.vectors[at : at + 1]), pad([[START, *tokens]]))
            logp = model.score(alone).logits.log_softmax(dim=-1)[0]  # type: ignore[operator]
            beyond = earned[k] - sum(earned[:k] + earned[k + 1 :]) / 3
            total -= beyond * sum(float(logp[step, token]) for step, token in enumerate(tokens))
    return total


def test_captions_that_earn_more_than_the_others_become_likelier(recipe: Path) -> None:
    loaded, opened = load_recipe(recipe, list(REWARD)), open_model(recipe.parent / "model")
    task = KIND.start(loaded.recipe, recipe.parent, opened.words, Ears()).task
    assert isinstance(task, RewardTask)
    batch = next(iter(task.batches(1)))
    drawn = [(5, 6, END), (7, END), (6, 5, 5, END), (5,)] * batch.size
    model = opened.model.train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    with patch.object(RewardTask, "_draw", lambda *_: drawn), torch.no_grad():
        loss = task.loss(model, batch)
        wanted = literally(task, model, batch, drawn)
    assert abs(wanted) > 1e-3
    assert float(loss.total) == pytest.approx(wanted, rel=1e-3)
    assert loss.tokens == 10 * batch.size


def test_what_is_drawn_follows_the_seed_and_leaves_the_model_in_training(recipe: Path) -> None:
    loaded, opened = load_recipe(recipe, list(REWARD)), open_model(recipe.parent / "model")
    task = KIND.start(loaded.recipe, recipe.parent, opened.words, Ears()).task
    assert isinstance(task, RewardTask)
    model, totals = opened.model.train(), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        totals.append(float(task.loss(model, next(iter(task.batches(1)))).total.detach()))
        assert model.training
    assert totals[0] == totals[1] != totals[2]
    numbers = [row for b in task.batches(1) if b.target is not None for row in b.target.ids[:, 0].tolist()]
    assert sorted(numbers) == list(range(len(task.train))), "every picture once"


def test_from_the_command_line(recipe: Path) -> None:
    done = heedful("train", recipe, *REWARD, "training.epochs=2", "--out", recipe.parent / "taught")
    assert done.returncode == 0, done.stderr
    assert "begun with model" in done.stderr
    assert "cider" in done.stderr


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (("training.reward=cider",), "needs training.start_from"),
        ((*REWARD, "training.smoothing=0.1"), "training.smoothing are for given captions"),
        ((*REWARD, "model.preset=caption-hard"), "whose looks are drawn, too"),
        ((*REWARD, "data.pictures.tuned=true"), "not with data.pictures.tuned"),
    ],
)
def test_what_does_not_fit_is_said(tmp_path: Path, settings: Sequence[str], said: str) -> None:
    (tmp_path / "r.toml").write_text(eyes.seeing())
    with pytest.raises(ConfigError, match=said):
        load_recipe(tmp_path / "r.toml", list(settings))

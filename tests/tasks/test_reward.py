"""Self-critical training: the loss against a loop over captions, and what it is not combined with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from torch import nn

import toy_backbones
from command_line import here
from heedful.config import load_recipe
from heedful.data.batch import Regions, TextBatch, pad
from heedful.data.tokenizer import END, START
from heedful.errors import ConfigError
from heedful.metrics.captions import Cider
from heedful.tasks.caption.assets import all_regions
from heedful.tasks.caption.reward import RewardTraining
from heedful.tasks.caption.task import TASK
from heedful.tasks.model_folder import load_model
from heedful.training.types import Callbacks

REWARD = ("training.reward=cider", "training.reward_samples=4", "training.init_from=model")


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recipe beside a captioner that was trained on reference captions."""
    path = tmp_path_factory.mktemp("reward") / "recipe.toml"
    path.write_text(toy_backbones.caption_recipe())
    done = here("train", path, "--out", path.parent / "model")
    assert done.returncode == 0, done.stderr
    return path


def setup(recipe: Path) -> tuple[RewardTraining, nn.Module]:
    """Return the training that continues the captioner, and the captioner."""
    loaded_recipe, loaded = load_recipe(recipe, list(REWARD)), load_model(recipe.parent / "model")
    training = TASK.setup_training(loaded_recipe.recipe, recipe.parent, loaded.assets, Callbacks()).task
    assert isinstance(training, RewardTraining)
    return training, loaded.model.train()


def literal_loss(
    training: RewardTraining, model: nn.Module, batch: TextBatch, captions: Sequence[tuple[int, ...]]
) -> float:
    """Sum caption by caption: its reward minus the mean reward of its image's others, times -log p."""
    assert batch.target is not None
    assert isinstance(batch.source, Regions)
    tokenizer = training.target
    cider = Cider([[f"{caption} </s>" for caption in item.captions] for item in training.train])
    total = 0.0
    for at, row in enumerate(batch.target.ids[:, 0].tolist()):
        own = captions[4 * at : 4 * at + 4]
        rewards = [cider.score(row, tokenizer.decode(t) + (" </s>" if t[-1] == END else "")) for t in own]
        for k, tokens in enumerate(own):
            single = TextBatch(all_regions(batch.source.vectors[at : at + 1]), pad([[START, *tokens]]))
            logp = model(single).logits.log_softmax(dim=-1)[0]
            advantage = rewards[k] - sum(rewards[:k] + rewards[k + 1 :]) / 3
            total -= advantage * sum(float(logp[step, token]) for step, token in enumerate(tokens))
    return total


@pytest.mark.usefixtures("as_users_run")
def test_captions_with_more_reward_than_the_others_become_more_likely(recipe: Path) -> None:
    training, model = setup(recipe)
    batch = next(iter(training.batches(1)))
    captions = [(5, 6, END), (7, END), (6, 5, 5, END), (5,)] * batch.size
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    with patch.object(RewardTraining, "_sample", lambda *_: captions), torch.no_grad():
        loss = training.loss(model, batch)  # type: ignore[arg-type]
        expected = literal_loss(training, model, batch, captions)
    assert abs(expected) > 1e-3
    assert float(loss.total) == pytest.approx(expected, rel=1e-3)
    assert loss.tokens == 10 * batch.size


@pytest.mark.usefixtures("as_users_run")
def test_samples_follow_the_seed_and_leave_the_model_in_training_mode(recipe: Path) -> None:
    training, model = setup(recipe)
    totals = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        totals.append(float(training.loss(model, next(iter(training.batches(1)))).total.detach()))  # type: ignore[arg-type]
        assert model.training
    assert totals[0] == totals[1] != totals[2]
    numbers = [row for b in training.batches(1) if b.target is not None for row in b.target.ids[:, 0].tolist()]
    assert sorted(numbers) == list(range(len(training.train))), "every image once"


@pytest.mark.usefixtures("as_users_run")
def test_a_captioner_is_trained_by_reward_from_the_command_line(recipe: Path) -> None:
    done = here("train", recipe, *REWARD, "training.epochs=1", "--out", recipe.parent / "rewarded")
    assert done.returncode == 0, done.stderr
    assert "initialized from model" in done.stderr
    assert "cider" in done.stderr


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        (("training.reward=cider",), "needs training.init_from"),
        ((*REWARD, "training.label_smoothing=0.1"), "training.label_smoothing need reference captions"),
        ((*REWARD, "model.preset=caption-hard"), "which samples as well"),
        ((*REWARD, "data.images.tune_backbone=true"), "cannot be combined with data.images.tune_backbone"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path: Path, settings: Sequence[str], error: str) -> None:
    (tmp_path / "r.toml").write_text(toy_backbones.caption_recipe())
    with pytest.raises(ConfigError, match=error):
        load_recipe(tmp_path / "r.toml", list(settings))

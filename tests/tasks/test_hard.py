"""Hard attention is taught by its draws: the loss against loops, its gradient against enumeration."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from heedful.attention import Look
from heedful.config import DataConfig, ModelConfig, Recipe, TrainingConfig, WorldConfig
from heedful.data.readers import world_pairs
from heedful.models import build
from heedful.tasks.hard import reinforce, some_expected
from heedful.tasks.text import TextTask, learn
from heedful.training.loop import train

CONFIG = TrainingConfig(reinforce=0.7, entropy=0.03)


def drawn(logp: Tensor, entropy: Tensor) -> dict[str, Look]:
    return {"cross": Look(None, extra={"logp": logp[..., None], "entropy": entropy[..., None]})}


def test_the_terms_are_those_of_the_paper_summed_in_loops() -> None:
    torch.manual_seed(0)
    real = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1]]).bool()
    soft = torch.tensor([False, True, False])
    words, chosen, entropy = -torch.rand(3, 4) - 0.1, -torch.rand(3, 4), torch.rand(3, 4)
    baseline = torch.tensor(-0.5)
    found = reinforce(drawn(chosen, entropy), words, real, soft, baseline, CONFIG)
    reward = [sum(words[b, t] for t in range(4) if real[b, t]) / real[b].sum() for b in range(3)]
    b = 0.9 * -0.5 + 0.1 * (reward[0] + reward[2]) / 2
    wanted = torch.zeros(())
    for row in range(3):
        for t in range(4):
            if real[row, t]:
                gain = 0.0 if soft[row] else reward[row] - b
                wanted -= 0.7 * gain * chosen[row, t] + 0.03 * entropy[row, t]
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(baseline, torch.as_tensor(b))


def test_the_first_baseline_is_the_first_reward() -> None:
    baseline = torch.tensor(math.nan)
    logp = torch.full((2, 3), -2.0)
    zero = torch.zeros(2, 3)
    args = (drawn(zero, zero), logp, torch.ones(2, 3).bool())
    reinforce(*args, torch.ones(2).bool(), baseline, CONFIG)
    assert baseline.isnan(), "nobody drew"
    reinforce(*args, torch.zeros(2).bool(), baseline, CONFIG)
    assert baseline == -2.0


def test_over_all_draws_the_gradient_is_that_of_the_expected_reward() -> None:
    """Three positions with known rewards: the mean over draws must be the exact gradient, baseline or not."""
    rewards = torch.tensor([-0.2, -3.0, -1.0], dtype=torch.float64)
    scores = torch.tensor([0.3, -0.5, 0.9], dtype=torch.float64, requires_grad=True)
    alpha = scores.softmax(0)
    (exact,) = torch.autograd.grad(-(alpha * rewards).sum(), scores, retain_graph=True)
    config = TrainingConfig(reinforce=1.0, entropy=0.0)
    mean = torch.zeros_like(exact)
    for position in range(3):
        baseline = ((-0.7 - 0.1 * rewards[position]) / 0.9).clone()  # so that it becomes -0.7 for each draw
        loss = reinforce(
            drawn(alpha[position].log().view(1, 1), torch.zeros(1, 1)),
            rewards[position].view(1, 1),
            torch.ones(1, 1).bool(),
            torch.zeros(1).bool(),
            baseline,
            config,
        )
        (slope,) = torch.autograd.grad(loss, scores, retain_graph=True)
        mean += alpha[position].detach() * slope
    torch.testing.assert_close(mean, exact)


def test_those_who_read_the_expectation_do_and_the_others_their_draw() -> None:
    alpha = torch.tensor([0.2, 0.8]).expand(2, 1, 1, 2)
    draw = torch.tensor([1.0, 0.0]).expand(2, 1, 1, 2)
    edit = some_expected(torch.tensor([True, False])).edit
    assert edit is not None
    override = edit("cross", Look(draw, extra={"alpha": alpha}), torch.zeros(2, 1, dtype=torch.long))
    assert override is not None
    torch.testing.assert_close(override.weights[:, 0, 0], torch.tensor([[0.2, 0.8], [1.0, 0.0]]))


@pytest.mark.usefixtures("as_users_run")
def test_draws_alone_teach_where_to_look(tmp_path: Path) -> None:
    """Nobody reads the expectation: then without REINFORCE the scores never hear what was good."""
    exact = {}
    for strength in (0.0, 1.0):
        world = WorldConfig(train=8_000, valid=200, test=1, max_words=4)
        model = {"embedding": 48, "dropout": 0.0, "encoder": {"hidden": 32}, "decoder": {"hidden": 64}}
        recipe = Recipe(
            data=DataConfig(world=world),
            model=ModelConfig.model_validate(
                {**model, "attention": {"placement": "hard", "generate": "argmax", "hidden": 64}}
            ),
            training=TrainingConfig(
                epochs=4, batch_tokens=500, rate=0.01, threads=1, expected=0.0, reinforce=strength
            ),
        )
        pairs = world_pairs(world)
        task = TextTask(recipe, pairs, learn(pairs["train"], recipe))
        torch.manual_seed(1)
        net = build(recipe.model, len(task.words.source), len(task.words.target))
        outcome = train(task, net, recipe.training, tmp_path / str(strength))
        assert -9 < float(net.baseline) < 0
        exact[strength] = outcome.best.figures["exact"]
    assert exact[1.0] > exact[0.0] + 0.08, exact

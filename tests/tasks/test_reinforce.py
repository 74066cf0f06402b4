"""REINFORCE for hard attention: the loss against loops, its gradient against enumeration."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from heedful.attention import AttentionOutput
from heedful.config import DataConfig, ModelConfig, Recipe, TrainingConfig, WorldConfig
from heedful.data.pairs import world_pairs
from heedful.models import Seq2Seq, build_seq2seq
from heedful.tasks.reinforce import reinforce_loss, soft_attention_hooks
from heedful.tasks.seq2seq.assets import Seq2SeqAssets
from heedful.tasks.seq2seq.training import Seq2SeqTraining
from heedful.training.loop import train

CONFIG = TrainingConfig(reinforce_weight=0.7, entropy_weight=0.03)


def sampled(logp: Tensor, entropy: Tensor) -> dict[str, AttentionOutput]:
    """Return attention with the log-probability of a sampled position and the entropy of the distribution."""
    extras = {"logp": logp[..., None], "entropy": entropy[..., None]}
    return {"cross": AttentionOutput(extras=extras)}


def test_the_loss_is_that_of_the_paper_summed_in_loops() -> None:
    torch.manual_seed(0)
    real = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1]]).bool()
    soft = torch.tensor([False, True, False])
    word_logp, position_logp, entropy = -torch.rand(3, 4) - 0.1, -torch.rand(3, 4), torch.rand(3, 4)
    baseline = torch.tensor(-0.5)
    actual = reinforce_loss(sampled(position_logp, entropy), word_logp, real, soft, baseline, CONFIG)
    reward = [sum(word_logp[b, t] for t in range(4) if real[b, t]) / real[b].sum() for b in range(3)]
    moved = 0.9 * -0.5 + 0.1 * (reward[0] + reward[2]) / 2
    expected = torch.zeros(())
    for row in range(3):
        for t in range(4):
            if real[row, t]:
                advantage = 0.0 if soft[row] else reward[row] - moved
                expected -= 0.7 * advantage * position_logp[row, t] + 0.03 * entropy[row, t]
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(baseline, torch.as_tensor(moved))


def test_the_first_baseline_is_the_first_reward() -> None:
    baseline = torch.tensor(math.nan)
    logp = torch.full((2, 3), -2.0)
    zero = torch.zeros(2, 3)
    arguments = (sampled(zero, zero), logp, torch.ones(2, 3).bool())
    reinforce_loss(*arguments, torch.ones(2).bool(), baseline, CONFIG)
    assert baseline.isnan(), "no sentence sampled a position"
    reinforce_loss(*arguments, torch.zeros(2).bool(), baseline, CONFIG)
    assert baseline == -2.0


def test_the_expected_gradient_is_that_of_the_expected_reward() -> None:
    """Three positions with known rewards: the mean over samples is the exact gradient, for any baseline."""
    rewards = torch.tensor([-0.2, -3.0, -1.0], dtype=torch.float64)
    scores = torch.tensor([0.3, -0.5, 0.9], dtype=torch.float64, requires_grad=True)
    alpha = scores.softmax(0)
    (exact,) = torch.autograd.grad(-(alpha * rewards).sum(), scores, retain_graph=True)
    config = TrainingConfig(reinforce_weight=1.0, entropy_weight=0.0)
    mean = torch.zeros_like(exact)
    for position in range(3):
        baseline = ((-0.7 - 0.1 * rewards[position]) / 0.9).clone()  # becomes -0.7 for every sample
        loss = reinforce_loss(
            sampled(alpha[position].log().view(1, 1), torch.zeros(1, 1)),
            rewards[position].view(1, 1),
            torch.ones(1, 1).bool(),
            torch.zeros(1).bool(),
            baseline,
            config,
        )
        (gradient,) = torch.autograd.grad(loss, scores, retain_graph=True)
        mean += alpha[position].detach() * gradient
    torch.testing.assert_close(mean, exact)


def test_soft_sentences_attend_by_the_expectation_and_others_by_their_sample() -> None:
    alpha = torch.tensor([0.2, 0.8]).expand(2, 1, 1, 2)
    sample = torch.tensor([1.0, 0.0]).expand(2, 1, 1, 2)
    edit = soft_attention_hooks(torch.tensor([True, False])).edit
    assert edit is not None
    attention = AttentionOutput(weights=sample, extras={"alpha": alpha})
    override = edit("cross", attention, torch.zeros(2, 1, dtype=torch.long))
    assert override is not None
    torch.testing.assert_close(override.weights[:, 0, 0], torch.tensor([[0.2, 0.8], [1.0, 0.0]]))


def hard_training(strength: float, n_pairs: int, epochs: int) -> tuple[Seq2SeqTraining, Seq2Seq]:
    """Return a training without soft sentences: positions are always sampled."""
    world = WorldConfig(train=n_pairs, valid=200, test=1, max_words=4)
    model = {"embedding": 48, "dropout": 0.0, "encoder": {"hidden": 32}, "decoder": {"hidden": 64}}
    attention = {"placement": "hard", "hard_inference": "argmax", "hidden": 64}
    recipe = Recipe(
        data=DataConfig(world=world),
        model=ModelConfig.model_validate({**model, "attention": attention}),
        training=TrainingConfig(
            epochs=epochs,
            batch_tokens=500,
            learning_rate=0.01,
            threads=1,
            soft_fraction=0.0,
            reinforce_weight=strength,
            entropy_weight=0.0,
        ),
    )
    pairs = world_pairs(world)
    training = Seq2SeqTraining(recipe, pairs, Seq2SeqAssets.train(pairs["train"], recipe))
    torch.manual_seed(1)
    return training, build_seq2seq(recipe.model, len(training.assets.source), len(training.assets.target))


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_only_reinforce_trains_the_scores_of_sampled_attention(strength: float) -> None:
    training, model = hard_training(strength, 50, 1)
    training.loss(model.train(), next(training.batches(1))).total.backward()  # type: ignore[no-untyped-call]
    gradients = [w.grad for name, w in model.named_parameters() if "attention.score" in name]
    largest = max(0.0 if gradient is None else float(gradient.abs().max()) for gradient in gradients)
    assert gradients
    assert (largest > 0) is (strength > 0)


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_run")
def test_reinforce_teaches_where_to_attend(tmp_path: Path) -> None:
    exact = {}
    for strength in (0.0, 1.0):
        training, model = hard_training(strength, 8_000, 4)
        outcome = train(training, model, training.recipe.training, tmp_path / str(strength))
        exact[strength] = outcome.best.metrics["exact"]
        assert strength == 0.0 or -9 < float(model.baseline) < 0
    assert exact[1.0] > exact[0.0] + 8, exact

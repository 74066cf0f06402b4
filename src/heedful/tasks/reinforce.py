"""Training of hard attention by REINFORCE (Xu 2015, §4.1): no gradient flows through a sampled position."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.attention import AttentionOutput, Hooks, Override
from heedful.config import Recipe, TrainingConfig


def samples_positions(recipe: Recipe) -> bool:
    """Return whether attention samples positions while this model is trained."""
    attention = recipe.model.attention
    return attention.placement == "hard" and attention.hard_training == "sample"


def soft_attention_hooks(soft: Bool[Tensor, " batch"]) -> Hooks:
    """Return hooks that replace the sampled position by the expectation, with gradients, where `soft` is true."""

    def edit(_site: str, attention: AttentionOutput, _positions: Int[Tensor, "batch query"]) -> Override | None:
        if "alpha" not in attention.extras or attention.weights is None:
            return None
        return Override(torch.where(soft[:, None, None, None], attention.extras["alpha"], attention.weights))

    return Hooks(edit=edit)


def reinforce_loss(
    attentions: Mapping[str, AttentionOutput],
    logp: Float[Tensor, "batch step"],
    real: Bool[Tensor, "batch step"],
    soft: Bool[Tensor, " batch"],
    baseline: Float[Tensor, ""],
    config: TrainingConfig,
) -> Float[Tensor, ""]:
    """Return `-lambda_r (log p(y|s) - b) log p(s) - lambda_e H`, summed over real steps.

    The reward `log p(y|s)` is the mean over a sentence's tokens, as in the released code, so that long sentences
    are not penalized; `soft` sentences sampled nothing. Updates `baseline`: b <- 0.9 b + 0.1 log p.
    """
    reward = ((logp * real).sum(dim=1) / real.sum(dim=1)).detach()
    sampled = ~soft
    total = logp.new_zeros(())
    if sampled.any():
        mean = reward[sampled].mean()
        baseline.copy_(torch.where(baseline.isnan(), mean, 0.9 * baseline + 0.1 * mean))
    advantage = torch.where(sampled, reward - baseline, 0.0)[:, None]
    for attention in attentions.values():
        if "logp" in attention.extras:
            position_logp = attention.extras["logp"].mean(dim=-1)
            entropy = attention.extras["entropy"].mean(dim=-1)
            objective = config.reinforce_weight * advantage * position_logp + config.entropy_weight * entropy
            total = total - (objective * real).sum()
    return total

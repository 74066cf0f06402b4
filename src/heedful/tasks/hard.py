"""Training hard attention (Xu 2015, §4.1): no gradient goes through a draw, so it is taught by REINFORCE."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.attention import Look, Override, Watch
from heedful.config import Recipe, TrainingConfig


def draws(recipe: Recipe) -> bool:
    """Are positions drawn while this model is trained?"""
    attention = recipe.model.attention
    return attention.placement == "hard" and attention.read == "sample"


def some_expected(soft: Bool[Tensor, "batch"]) -> Watch:
    """Let the sentences of `soft` read the expectation in place of their draws: there gradients do flow."""

    def edit(_site: str, look: Look, _at: Int[Tensor, "batch query"]) -> Override | None:
        if "alpha" not in look.extra or look.weights is None:
            return None
        return Override(torch.where(soft[:, None, None, None], look.extra["alpha"], look.weights))

    return Watch(edit=edit)


def reinforce(
    looks: Mapping[str, Look],
    logp: Float[Tensor, "batch step"],
    real: Bool[Tensor, "batch step"],
    soft: Bool[Tensor, "batch"],
    baseline: Float[Tensor, ""],
    config: TrainingConfig,
) -> Float[Tensor, ""]:
    """What draws add to the loss: `-lambda_r (log p(y|s) - b) log p(s) - lambda_e H`, over real steps.

    `log p(y|s)` is a sentence's mean over its words, as in the released code, so that long sentences are
    not worse than short ones; `soft` sentences drew nothing. `baseline` is moved: b <- 0.9 b + 0.1 log p.
    """
    reward = ((logp * real).sum(dim=1) / real.sum(dim=1)).detach()
    drawn = ~soft
    total = logp.new_zeros(())
    if drawn.any():
        mean = reward[drawn].mean()
        baseline.copy_(torch.where(baseline.isnan(), mean, 0.9 * baseline + 0.1 * mean))
    gain = torch.where(drawn, reward - baseline, 0.0)[:, None]
    for look in looks.values():
        if "logp" in look.extra:
            chosen, entropy = look.extra["logp"].mean(dim=-1), look.extra["entropy"].mean(dim=-1)
            worth = config.reinforce * gain * chosen + config.entropy * entropy
            total = total - (worth * real).sum()
    return total

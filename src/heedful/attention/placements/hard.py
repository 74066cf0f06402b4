"""Hard attention (Xu 2015)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Generator, Tensor

from heedful.attention.normalizers.base import Normalizer
from heedful.attention.placements.base import Allowed, Placement, PlacementContext, PlacementOutput, Scores
from heedful.config import AttentionConfig
from heedful.errors import ShapeError
from heedful.trace.schema import Mass

HardMode = Literal["sample", "argmax", "expectation"]


class Hard(Placement):
    """All weight on one position (Xu 2015 §4.1); its log-probability and the entropy are returned as extras.

    Three modes: `sample`, `argmax` (of equal weights the first) and `expectation`, which is soft attention.
    `hard_training` is the mode in training, `hard_inference` the one in evaluation. Gradients reach the distribution
    only through `logp` and `entropy` (REINFORCE), or through the expectation.
    """

    def __init__(self, hard_training: HardMode = "sample", hard_inference: HardMode = "expectation") -> None:
        super().__init__()
        self.hard_training: HardMode = hard_training
        self.hard_inference: HardMode = hard_inference

    @classmethod
    def from_config(cls, config: AttentionConfig, query_size: int) -> Placement:
        return cls(config.hard_training, config.hard_inference)

    def mass(self, normalizer_mass: Mass) -> Mass:
        if normalizer_mass != "one":
            raise ShapeError("hard attention samples from its weights, which must sum to 1; use another normalizer")
        return "one"

    def forward(
        self, scores: Scores, allowed: Allowed, normalizer: Normalizer, context: PlacementContext
    ) -> PlacementOutput:
        alpha = normalizer(scores, allowed)
        if alpha.shape[-1] == 0:  # an empty source: nothing to sample from
            zeros = alpha.sum(dim=-1)
            no_sample = torch.full_like(zeros, -1, dtype=torch.long)
            return alpha, {"alpha": alpha, "sample": no_sample, "logp": zeros, "entropy": zeros}
        has_key = allowed.any(dim=-1).expand(alpha.shape[:-1])
        log_alpha = alpha.clamp_min(torch.finfo(alpha.dtype).tiny).log()
        entropy = -(alpha * log_alpha).sum(dim=-1)
        mode = self.hard_training if self.training else self.hard_inference
        index = _sample(alpha, has_key, context.rng) if mode == "sample" else _first_argmax(alpha)
        logp = log_alpha.gather(-1, index[..., None]).squeeze(-1).masked_fill(~has_key, 0.0)
        extras = {"alpha": alpha, "sample": index.masked_fill(~has_key, -1), "logp": logp, "entropy": entropy}
        if mode == "expectation":
            return alpha, extras
        one_hot = torch.zeros_like(alpha).scatter(-1, index[..., None], 1.0)
        return one_hot.masked_fill(~has_key[..., None], 0.0), extras


def _first_argmax(alpha: Tensor) -> Tensor:
    """Return the first position of the largest weight; torch's argmax may return any of several maxima."""
    best = alpha == alpha.amax(dim=-1, keepdim=True)
    return best.to(torch.uint8).cumsum(-1).eq(0).sum(-1)


def _sample(alpha: Tensor, has_key: Tensor, rng: Generator | None) -> Tensor:
    """Draw one index per row; a row without keys draws from a uniform placeholder, which the caller removes."""
    rows = alpha.detach().float().masked_fill(~has_key[..., None], 1.0).flatten(end_dim=-2)
    return torch.multinomial(rows, 1, generator=rng).view(alpha.shape[:-1])


PLACEMENT = Hard

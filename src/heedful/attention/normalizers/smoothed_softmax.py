"""Smoothed softmax (He 2018)."""

from __future__ import annotations

from typing import ClassVar

from heedful.attention.normalizers.base import Keep, Normalizer, Scores, mask_scores, mask_weights
from heedful.config import AttentionConfig
from heedful.trace.schema import Mass


def smoothed_softmax(scores: Scores, keep: Keep, beta: float = 0.5) -> Scores:
    """`exp(e_i) / (sum_j exp e_j)^beta` (He 2018, eq. 8): long histories are penalized less.

    The usual subtraction of the maximum would change the result unless beta is 1, so it is computed as
    `exp(e - beta * logsumexp e)`. The weights sum to `(sum_j exp e_j)^(1 - beta)`.

    >>> import torch
    >>> smoothed_softmax(torch.zeros(1, 4), torch.ones(1, 4, dtype=torch.bool), beta=0.5)
    tensor([[0.5000, 0.5000, 0.5000, 0.5000]])
    """
    masked = mask_scores(scores, keep)
    total = masked.logsumexp(dim=-1, keepdim=True)
    # Masked before the exponential: otherwise the gradient of a masked key could be inf * 0.
    return mask_weights((masked - beta * total).masked_fill(~keep, float("-inf")).exp(), keep, scores.dtype)


class SmoothedSoftmax(Normalizer):
    """`exp(e_i) / (sum_j exp e_j)^beta` (He 2018, eq. 8)."""

    mass: ClassVar[Mass] = "free"

    def __init__(self, beta: float = 0.5) -> None:
        self.beta = beta

    @classmethod
    def from_config(cls, config: AttentionConfig) -> Normalizer:
        return cls(config.beta)

    def __call__(self, scores: Scores, keep: Keep) -> Scores:
        return smoothed_softmax(scores, keep, self.beta)


NORMALIZER = SmoothedSoftmax

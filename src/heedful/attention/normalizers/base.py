"""The base class of normalizers, and functions that several of them use."""

from __future__ import annotations

from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.config import AttentionConfig
from heedful.trace.schema import Mass

Scores = Float[Tensor, "*lead key"]
Keep = Bool[Tensor, "*#lead key"]


class Normalizer:
    """Base class of normalizers: functions of scores and mask, without trainable parameters."""

    mass: ClassVar[Mass] = "one"  # what the weights of a row sum to

    @classmethod
    def from_config(cls, config: AttentionConfig) -> Normalizer:
        """Build the normalizer with its settings."""
        return cls()

    def __call__(self, scores: Scores, keep: Keep) -> Scores:
        raise NotImplementedError(f"{type(self).__name__} does not define __call__")


def mask_scores(scores: Scores, keep: Keep) -> Scores:
    """Return the scores in at least float32, with -inf where `keep` is False.

    A row without any allowed key becomes 0 instead, so that no normalizer gets a row of -inf; `mask_weights` sets the
    resulting weights to 0.
    """
    if scores.dtype in (torch.float16, torch.bfloat16):  # a product too large for half precision is inf
        largest = torch.finfo(scores.dtype).max
        scores = scores.float().clamp(-largest, largest)
    has_key = keep.any(dim=-1, keepdim=True)
    return scores.masked_fill(~keep & has_key, float("-inf")).masked_fill(~has_key, 0.0)


def mask_weights(weights: Scores, keep: Keep, dtype: torch.dtype) -> Scores:
    """Return the weights in `dtype`, with exactly 0 where `keep` is False."""
    return weights.masked_fill(~keep, 0.0).to(dtype)

"""Sparsemax (Martins & Astudillo 2016)."""

from __future__ import annotations

from collections.abc import Callable

import entmax
from torch import Tensor

from heedful.attention.normalizers.base import Keep, Normalizer, Scores, mask_scores, mask_weights


def sparsemax(scores: Scores, keep: Keep) -> Scores:
    """Martins & Astudillo 2016: the Euclidean projection onto the simplex; many weights are exactly 0.

    >>> import torch
    >>> sparsemax(torch.tensor([[2.0, 1.5, 0.0]]), torch.ones(1, 3, dtype=torch.bool))
    tensor([[0.7500, 0.2500, 0.0000]])
    """
    return apply_sparse(entmax.sparsemax, scores, keep)


class Sparsemax(Normalizer):
    """The Euclidean projection of the scores onto the simplex."""

    def __call__(self, scores: Scores, keep: Keep) -> Scores:
        return sparsemax(scores, keep)


def apply_sparse(function: Callable[..., Tensor], scores: Scores, keep: Keep) -> Scores:
    """Apply a function of the entmax package over the keys that `keep` allows.

    entmax raises on a row of -inf. Its functions give 0 to anything 2 below the maximum, so masked keys are set to
    10 below it.
    """
    if scores.shape[-1] == 0:  # an empty tape: nothing to sort
        return scores
    masked = mask_scores(scores, keep)
    below = masked - masked.detach().amax(dim=-1, keepdim=True)  # the functions are invariant to shifts
    return mask_weights(function(below.masked_fill(~keep, -10.0), dim=-1), keep, scores.dtype)


NORMALIZER = Sparsemax

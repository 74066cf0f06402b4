"""1.5-entmax (Peters 2019)."""

from __future__ import annotations

import entmax

from heedful.attention.normalizers.base import Keep, Normalizer, Scores
from heedful.attention.normalizers.sparsemax import apply_sparse


def entmax15(scores: Scores, keep: Keep) -> Scores:
    """Peters 2019 with alpha = 1.5: between softmax and sparsemax.

    >>> import torch
    >>> entmax15(torch.tensor([[1.0, 1.0, -9.0]]), torch.ones(1, 3, dtype=torch.bool))
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    return apply_sparse(entmax.entmax15, scores, keep)


class Entmax15(Normalizer):
    """Entmax with alpha = 1.5."""

    def __call__(self, scores: Scores, keep: Keep) -> Scores:
        return entmax15(scores, keep)


NORMALIZER = Entmax15

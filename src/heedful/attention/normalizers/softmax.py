"""Softmax."""

from __future__ import annotations

from heedful.attention.normalizers.base import Keep, Normalizer, Scores, mask_scores, mask_weights


def masked_softmax(scores: Scores, keep: Keep) -> Scores:
    """Softmax over the keys that `keep` allows; every other key gets exactly 0.

    A query without any allowed key gets a row of zeros. (Uniform weights would attend to padding, NaN would spread to
    the gradients of the whole batch.)

    >>> import torch
    >>> masked_softmax(torch.zeros(2, 3), torch.tensor([[True, True, False], [False] * 3]))
    tensor([[0.5000, 0.5000, 0.0000],
            [0.0000, 0.0000, 0.0000]])
    """
    return mask_weights(mask_scores(scores, keep).softmax(dim=-1), keep, scores.dtype)


class Softmax(Normalizer):
    """`exp(e_i) / sum_j exp e_j`."""

    def __call__(self, scores: Scores, keep: Keep) -> Scores:
        return masked_softmax(scores, keep)


NORMALIZER = Softmax

"""Normalisers: from scores and a mask to weights.

All agree on three things: a key that `keep` forbids gets exactly 0; a query that may read nothing gets a
row of zeros; half precision is computed in float32 and given back in the dtype it came in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import entmax
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.record import Mass

Scores = Float[Tensor, "*lead key"]
Keep = Bool[Tensor, "*#lead key"]
Normalise = Callable[[Tensor, Tensor], Tensor]


def _opened(scores: Tensor, keep: Tensor) -> Tensor:
    """Scores in at least float32, with -inf where forbidden.

    Rows that may read nothing are set to 0 instead, so that no normaliser meets a row of -inf; what
    it makes of them is thrown away by `_closed`.
    """
    wide = scores
    if scores.dtype in (torch.float16, torch.bfloat16):  # a product too large for half precision is inf
        largest = torch.finfo(scores.dtype).max
        wide = scores.float().clamp(-largest, largest)
    some = keep.any(dim=-1, keepdim=True)
    return wide.masked_fill(~keep & some, float("-inf")).masked_fill(~some, 0.0)


def _closed(weights: Tensor, keep: Tensor, like: Tensor) -> Tensor:
    return weights.masked_fill(~keep, 0.0).to(like.dtype)


def masked_softmax(scores: Scores, keep: Keep) -> Scores:
    """Softmax over the keys that `keep` allows; every other key gets exactly 0.

    A query allowed no key gets a row of zeros: it reads nothing. (Uniform weights would let
    padding in; NaN would poison the batch.)

    >>> masked_softmax(torch.zeros(2, 3), torch.tensor([[True, True, False], [False] * 3]))
    tensor([[0.5000, 0.5000, 0.0000],
            [0.0000, 0.0000, 0.0000]])
    """
    opened = _opened(scores, keep)
    return _closed(opened.softmax(dim=-1), keep, scores)


def smoothed_softmax(scores: Scores, keep: Keep, beta: float = 0.5) -> Scores:
    """`exp(e_i) / (sum_j exp e_j)^beta` (He 2018, eq. 8): long histories are punished less.

    The usual subtraction of the maximum would change the result when beta is not 1, so it is computed as
    `exp(e - beta * logsumexp e)`. The weights sum to `(sum_j exp e_j)^(1 - beta)`.

    >>> smoothed_softmax(torch.zeros(1, 4), torch.ones(1, 4, dtype=torch.bool), beta=0.5)
    tensor([[0.5000, 0.5000, 0.5000, 0.5000]])
    """
    opened = _opened(scores, keep)
    total = opened.logsumexp(dim=-1, keepdim=True)
    # The fill comes before the exponential, so that no gradient of a forbidden key is inf * 0.
    return _closed((opened - beta * total).masked_fill(~keep, float("-inf")).exp(), keep, scores)


def _sparse(function: Callable[..., Tensor], scores: Tensor, keep: Tensor) -> Tensor:
    """Run one of entmax's functions; forbidden keys stand so far below the best that they get 0.

    entmax raises on a row of -inf; both functions give 0 to anything 2 below the maximum.
    """
    if scores.shape[-1] == 0:  # an empty tape: nothing to sort
        return scores
    opened = _opened(scores, keep)
    below = opened - opened.detach().amax(dim=-1, keepdim=True)  # a shift that cancels, whatever its size
    return _closed(function(below.masked_fill(~keep, -10.0), dim=-1), keep, scores)


def sparsemax(scores: Scores, keep: Keep) -> Scores:
    """Martins & Astudillo 2016: the Euclidean projection onto the simplex; many weights are exactly 0.

    >>> sparsemax(torch.tensor([[2.0, 1.5, 0.0]]), torch.ones(1, 3, dtype=torch.bool))
    tensor([[0.7500, 0.2500, 0.0000]])
    """
    return _sparse(entmax.sparsemax, scores, keep)


def entmax15(scores: Scores, keep: Keep) -> Scores:
    """Peters 2019 with alpha = 1.5: between softmax and sparsemax.

    >>> entmax15(torch.tensor([[1.0, 1.0, -9.0]]), torch.ones(1, 3, dtype=torch.bool))
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    return _sparse(entmax.entmax15, scores, keep)


class Normaliser(NamedTuple):
    """An entry of the table: the function and what its weights sum to."""

    apply: Callable[..., Tensor]
    mass: Mass


NORMALISERS: dict[str, Normaliser] = {
    "softmax": Normaliser(masked_softmax, "one"),
    "smoothed-softmax": Normaliser(smoothed_softmax, "free"),
    "sparsemax": Normaliser(sparsemax, "one"),
    "entmax15": Normaliser(entmax15, "one"),
}

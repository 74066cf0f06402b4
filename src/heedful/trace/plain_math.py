"""The models' equations in plain Python, for `check` and `replay`.

Nothing here is shared with the models. Vectors are lists of floats, matrices lists of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import mul
from typing import Any

import numpy as np
import numpy.typing as npt

Vector = Sequence[float]
Rows = Sequence[Vector]


def dot(a: Vector, b: Vector) -> float:
    if len(a) != len(b):  # map() would stop at the shorter one
        raise ValueError(f"vectors of {len(a)} and {len(b)} numbers have no dot product")
    return float(sum(map(mul, a, b)))


def affine(matrix: Rows, x: Vector, bias: Vector | None = None) -> list[float]:
    """Return `W x + b`; the rows of W are the outputs."""
    product = [dot(row, x) for row in matrix]
    return product if bias is None else [p + b for p, b in zip(product, bias, strict=True)]


def add(*vectors: Vector) -> list[float]:
    return [sum(values) for values in zip(*vectors, strict=True)]


def tanh(x: Vector) -> list[float]:
    return [math.tanh(value) for value in x]


def relu(x: Vector) -> list[float]:
    return [max(0.0, value) for value in x]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def log_sigmoid(x: float) -> float:
    """
    >>> round(log_sigmoid(0.0), 3), log_sigmoid(-1000.0)
    (-0.693, -1000.0)
    """
    return min(x, 0.0) - math.log1p(math.exp(-abs(x)))


def layer_norm(x: Vector, weight: Vector, bias: Vector, epsilon: float) -> list[float]:
    mean = sum(x) / len(x)
    variance = sum((value - mean) ** 2 for value in x) / len(x)
    scale = 1 / math.sqrt(variance + epsilon)
    return [(v - mean) * scale * w + b for v, w, b in zip(x, weight, bias, strict=True)]


def _log_sum_exp(x: Vector) -> float:
    top = max(x)
    return top + math.log(sum(math.exp(value - top) for value in x))


def log_softmax(x: Vector) -> list[float]:
    total = _log_sum_exp(x)
    return [value - total for value in x]


def _softmax(scores: Vector) -> list[float]:
    return [math.exp(value) for value in log_softmax(scores)]


def _smoothed_softmax(scores: Vector, beta: float) -> list[float]:
    """`exp(e_i) / (sum_j exp(e_j))^beta` (He 2018, eq. 9)."""
    total = _log_sum_exp(scores)
    return [math.exp(value - beta * total) for value in scores]


def _sparsemax(scores: Vector) -> list[float]:
    """The Euclidean projection onto the simplex (Martins 2016)."""
    return _threshold([value - max(scores) for value in scores], lambda gap: gap)


def _entmax15(scores: Vector) -> list[float]:
    """`max(0, e/2 - tau)^2` (Peters 2019)."""
    return _threshold([(value - max(scores)) / 2 for value in scores], lambda gap: gap * gap)


def _threshold(scores: Vector, weigh: Callable[[float], float]) -> list[float]:
    """Find by bisection the tau at which the weights of the scores above it sum to 1."""
    low, high = -1.0, 0.0  # at 0 all weights are 0, at -1 the largest score alone has weight 1
    for _ in range(100):
        tau = (low + high) / 2
        total = sum(weigh(max(0.0, value - tau)) for value in scores)
        low, high = (tau, high) if total > 1 else (low, tau)
    return [weigh(max(0.0, value - low)) for value in scores]


NORMALIZERS: dict[str, Callable[[Vector, float], list[float]]] = {
    "softmax": lambda scores, _: _softmax(scores),
    "smoothed-softmax": _smoothed_softmax,
    "sparsemax": lambda scores, _: _sparsemax(scores),
    "entmax15": lambda scores, _: _entmax15(scores),
}


def normalize(scores: Vector, allowed: Sequence[bool], name: str, beta: float = 0.5) -> list[float]:
    """Return the weights of the allowed scores; the others get 0, and all of them if none is allowed.

    >>> [round(w, 6) for w in normalize([2.0, 1.0, 0.0], [True] * 3, "softmax")]
    [0.665241, 0.244728, 0.090031]
    """
    inside = [score for score, keep in zip(scores, allowed, strict=True) if keep]
    if not inside:
        return [0.0] * len(scores)
    weights = iter(NORMALIZERS[name](inside, beta))
    return [next(weights) if keep else 0.0 for keep in allowed]


def weighted_sum(weights: Vector, values: Rows) -> list[float]:
    """Return the context `c = sum_i a_i v_i`.

    >>> weighted_sum([0.5, 0.25], [[1.0, 0.0], [0.0, 4.0]])
    [0.5, 1.0]
    """
    width = len(values[0]) if values else 0
    return [sum(w * row[d] for w, row in zip(weights, values, strict=True)) for d in range(width)]


def max_difference(recomputed: Vector, recorded: npt.NDArray[Any]) -> float:
    """Return the largest absolute difference between two vectors; 0 for empty ones."""
    return float(np.abs(np.asarray(recomputed) - recorded).max(initial=0.0))

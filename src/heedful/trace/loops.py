"""The equations once more, in plain Python: what `check` and `replay` compute with.

Nothing here is shared with the models. Vectors are lists of floats, matrices lists of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import mul

Vector = Sequence[float]
Rows = Sequence[Vector]


def dot(a: Vector, b: Vector) -> float:
    return float(sum(map(mul, a, b)))


def times(matrix: Rows, x: Vector, bias: Vector | None = None) -> list[float]:
    """`W x + b`, W's rows being the outputs."""
    made = [dot(row, x) for row in matrix]
    return made if bias is None else [m + b for m, b in zip(made, bias, strict=True)]


def plus(*vectors: Vector) -> list[float]:
    return [sum(parts) for parts in zip(*vectors, strict=True)]


def tanh(x: Vector) -> list[float]:
    return [math.tanh(value) for value in x]


def relu(x: Vector) -> list[float]:
    return [max(0.0, value) for value in x]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def norm(x: Vector, weight: Vector, bias: Vector, epsilon: float) -> list[float]:
    """Layer normalisation."""
    mean = sum(x) / len(x)
    variance = sum((value - mean) ** 2 for value in x) / len(x)
    scale = 1 / math.sqrt(variance + epsilon)
    return [(v - mean) * scale * w + b for v, w, b in zip(x, weight, bias, strict=True)]


def log_softmax(x: Vector) -> list[float]:
    top = max(x)
    total = top + math.log(sum(math.exp(value - top) for value in x))
    return [value - total for value in x]


def _softmax(scores: Vector) -> list[float]:
    return [math.exp(value) for value in log_softmax(scores)]


def _smoothed(beta: float) -> Callable[[Vector], list[float]]:
    def smoothed(scores: Vector) -> list[float]:
        top = max(scores)
        total = top + math.log(sum(math.exp(value - top) for value in scores))
        return [math.exp(value - beta * total) for value in scores]

    return smoothed


def _sparsemax(scores: Vector) -> list[float]:
    """The nearest point of the simplex (Martins 2016)."""
    return _threshold([value - max(scores) for value in scores], lambda gap: gap)


def _entmax15(scores: Vector) -> list[float]:
    """Peters 2019: `max(0, e/2 - tau)^2`."""
    return _threshold([(value - max(scores)) / 2 for value in scores], lambda gap: gap * gap)


def _threshold(scores: Vector, weigh: Callable[[float], float]) -> list[float]:
    """The tau at which the weights of what is above it sum to 1, by halving."""
    low, high = -1.0, 0.0  # at 0 nothing is left, at -1 the best alone has 1
    for _ in range(100):
        tau = (low + high) / 2
        total = sum(weigh(max(0.0, value - tau)) for value in scores)
        low, high = (tau, high) if total > 1 else (low, tau)
    return [weigh(max(0.0, value - low)) for value in scores]


def normalise(scores: Vector, allowed: Sequence[bool], name: str, beta: float = 0.5) -> list[float]:
    """Weights of the allowed scores; the others have 0, and where none is allowed, all.

    >>> [round(w, 6) for w in normalise([2.0, 1.0, 0.0], [True] * 3, "softmax")]
    [0.665241, 0.244728, 0.090031]
    """
    inside = [score for score, open_ in zip(scores, allowed, strict=True) if open_]
    if not inside:
        return [0.0] * len(scores)
    ways = {
        "softmax": _softmax,
        "smoothed-softmax": _smoothed(beta),
        "sparsemax": _sparsemax,
        "entmax15": _entmax15,
    }
    weights = iter(ways[name](inside))
    return [next(weights) if open_ else 0.0 for open_ in allowed]


def mixture(weights: Vector, values: Rows) -> list[float]:
    """`c = sum_i a_i v_i`.

    >>> mixture([0.5, 0.25], [[1.0, 0.0], [0.0, 4.0]])
    [0.5, 1.0]
    """
    wide = len(values[0]) if values else 0
    return [sum(w * row[d] for w, row in zip(weights, values, strict=True)) for d in range(wide)]

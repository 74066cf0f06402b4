"""Plain loops over floats, which share no code with the layers they check."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

Vector = Sequence[float]


def times(weight: Tensor, x: Vector, bias: Tensor | None = None) -> list[float]:
    """Return `W x + b`."""
    rows = [sum(w * value for w, value in zip(row, x, strict=True)) for row in weight.tolist()]
    return rows if bias is None else [a + b for a, b in zip(rows, bias.tolist(), strict=True)]


def plus(*vectors: Vector) -> list[float]:
    return [sum(values) for values in zip(*vectors, strict=True)]


def scaled(factor: float, x: Vector) -> list[float]:
    return [factor * value for value in x]


def tanh(x: Vector) -> list[float]:
    return [math.tanh(value) for value in x]


def sigmoid(x: Vector) -> list[float]:
    return [1 / (1 + math.exp(-value)) for value in x]


def dot(x: Vector, y: Vector) -> float:
    return sum(a * b for a, b in zip(x, y, strict=True))


def softmax(scores: Vector) -> list[float]:
    total = sum(math.exp(score) for score in scores)
    return [math.exp(score) / total for score in scores]


def weighted_sum(weights: Vector, rows: Sequence[Vector]) -> list[float]:
    return [sum(w * row[d] for w, row in zip(weights, rows, strict=True)) for d in range(len(rows[0]))]


def gru(weights: Sequence[Tensor], x: Vector, h: Vector) -> list[float]:
    """Run one GRU step (Cho 2014, in torch's form); the weights are `W_i, W_h, b_i, b_h`."""
    size = len(h)
    gi, gh = times(weights[0], x, weights[2]), times(weights[1], h, weights[3])
    r, z = sigmoid(plus(gi[:size], gh[:size])), sigmoid(plus(gi[size : 2 * size], gh[size : 2 * size]))
    candidate = tanh([a + gate * b for a, gate, b in zip(gi[2 * size :], r, gh[2 * size :], strict=True)])
    return [(1 - gate) * new + gate * old for gate, new, old in zip(z, candidate, h, strict=True)]

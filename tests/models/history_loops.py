"""NAIS and FISM in plain loops over floats; they share no code with the package."""

from __future__ import annotations

import math
from collections.abc import Sequence

Vector = Sequence[float]
Rows = Sequence[Sequence[float]]


def dot(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def nais(  # the equations' own letters
    p: Rows,
    q: Rows,
    bias: Vector,
    W: Rows,
    b: Vector,
    h: Vector,
    beta: float,
    concat: bool,
    history: Sequence[int],
    i: int,
) -> tuple[float, list[float]]:
    """He 2018, eq. 5-8: return the score of item i, and the weight of each item of the history."""
    f = []
    for j in history:
        inputs = [*p[i], *q[j]] if concat else [x * y for x, y in zip(p[i], q[j], strict=True)]
        hidden = [max(0.0, dot(row, inputs) + offset) for row, offset in zip(W, b, strict=True)]
        f.append(dot(h, hidden))
    total = sum(math.exp(value) for value, j in zip(f, history, strict=True) if j != i)
    weights = [0.0 if j == i else math.exp(value) / total**beta for value, j in zip(f, history, strict=True)]
    return bias[i] + sum(a * dot(p[i], q[j]) for a, j in zip(weights, history, strict=True)), weights


def fism(p: Rows, q: Rows, bias: Vector, alpha: float, history: Sequence[int], i: int) -> float:
    """Kabbur 2013, eq. 3, without the bias of a user: every other item of the history has the same weight."""
    rest = [j for j in history if j != i]
    if not rest:
        return bias[i]
    return bias[i] + math.pow(len(rest), -alpha) * sum(dot(p[i], q[j]) for j in rest)


def log_loss(y: float, label: float) -> float:
    p = 1 / (1 + math.exp(-y))
    return -(label * math.log(p) + (1 - label) * math.log(1 - p))

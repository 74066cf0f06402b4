"""NAIS and FISM in plain loops over floats, written from the equations; shares no code with the package."""

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
    """He 2018, equations 5 to 8: the score of item i, and the weight of each item of the history."""
    f = []
    for j in history:
        given = [*p[i], *q[j]] if concat else [x * y for x, y in zip(p[i], q[j], strict=True)]
        hidden = [max(0.0, dot(row, given) + start) for row, start in zip(W, b, strict=True)]
        f.append(dot(h, hidden))
    total = sum(math.exp(value) for value, j in zip(f, history, strict=True) if j != i)
    weights = [0.0 if j == i else math.exp(value) / total**beta for value, j in zip(f, history, strict=True)]
    return bias[i] + sum(a * dot(p[i], q[j]) for a, j in zip(weights, history, strict=True)), weights


def fism(p: Rows, q: Rows, bias: Vector, alpha: float, history: Sequence[int], i: int) -> float:
    """Kabbur 2013, equation 3, without a user's bias: every other item of the history speaks alike."""
    others = [j for j in history if j != i]
    if not others:
        return bias[i]
    return bias[i] + math.pow(len(others), -alpha) * sum(dot(p[i], q[j]) for j in others)


def log_loss(y: float, label: float) -> float:
    chance = 1 / (1 + math.exp(-y))
    return -(label * math.log(chance) + (1 - label) * math.log(1 - chance))

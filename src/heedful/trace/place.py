"""From scores to the weights that are used: mask, placement and normaliser, in plain loops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from heedful.trace.loops import Vector, normalise


def placed(
    scores: Vector,
    allowed: Sequence[bool],
    settings: Mapping[str, Any],
    step: int,
    extra: Mapping[str, float],
) -> list[float]:
    """The weights of one query, as the attention section of a recipe says.

    `extra` holds what was recorded of the placement: the centre of a local look, the position drawn by a
    hard one. T, which local attention counts in, is one past the last position that may be read.
    """
    name, beta = settings.get("normaliser", "softmax"), settings.get("beta", 0.5)
    placement, reach = settings.get("placement", "global"), settings.get("window", 10)
    count = len(scores)
    if placement == "uniform":
        readable = sum(allowed)
        return [1 / readable if open_ else 0.0 for open_ in allowed]
    if placement == "local-m":
        length = max((i + 1 for i, open_ in enumerate(allowed) if open_), default=0)
        centre = min(step, length - 1)
        near = [abs(i - centre) <= reach for i in range(count)]
        return normalise(scores, [a and n for a, n in zip(allowed, near, strict=True)], name, beta)
    if placement == "local-p":
        centre_p = extra["centre"]
        near = [abs(i - math.floor(centre_p)) <= reach for i in range(count)]
        weights = normalise(scores, [a and n for a, n in zip(allowed, near, strict=True)], name, beta)
        bell = [math.exp(-((i - centre_p) ** 2) / (2 * (reach / 2) ** 2)) for i in range(count)]
        weights = [w * b for w, b in zip(weights, bell, strict=True)]
        total = sum(weights)
        return [w / total for w in weights] if settings.get("renormalise") and total else weights
    weights = normalise(scores, allowed, name, beta)
    if placement == "hard" and settings.get("generate", "expectation") != "expectation":
        drawn = round(extra["sample"])
        return [float(i == drawn) for i in range(count)]
    return weights

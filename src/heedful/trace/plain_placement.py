"""From scores to attention weights in plain loops: mask, placement and normalizer."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from typing import Any

from heedful.trace.plain_math import NORMALIZERS, Vector, normalize

PLACEMENT_EXTRAS = {"global": (), "uniform": (), "local-m": (), "local-p": ("center",), "hard": ()}


def is_known_mechanism(settings: Mapping[str, Any], extras: Container[str]) -> bool:
    """Return whether the plain loops know this normalizer and placement; those of plugins are not recomputed."""
    needed = PLACEMENT_EXTRAS.get(str(settings.get("placement", "global")))
    if settings.get("placement") == "hard" and settings.get("hard_inference", "expectation") != "expectation":
        needed = ("sample",)
    return (
        needed is not None
        and str(settings.get("normalizer", "softmax")) in NORMALIZERS
        and all(n in extras for n in needed)
    )


def weights_from_scores(
    scores: Vector,
    allowed: Sequence[bool],
    settings: Mapping[str, Any],
    step: int,
    extras: Mapping[str, float],
) -> list[float]:
    """Return the weights of one query, given the [model.attention] section of a recipe.

    `extras` holds what the placement recorded: the center of a local window, the position a hard attention took.
    The source length of local attention is one past the last position that may be read.
    """
    name, beta = settings.get("normalizer", "softmax"), settings.get("beta", 0.5)
    placement, window = settings.get("placement", "global"), settings.get("window", 10)
    n_keys = len(scores)

    def inside_window(center: int) -> list[bool]:
        return [keep and abs(key - center) <= window for key, keep in enumerate(allowed)]

    if placement == "uniform":
        return [1 / sum(allowed) if keep else 0.0 for keep in allowed]
    if placement == "local-m":
        length = max((key + 1 for key, keep in enumerate(allowed) if keep), default=0)
        return normalize(scores, inside_window(min(step, length - 1)), name, beta)
    if placement == "local-p":
        center = extras["center"]
        weights = normalize(scores, inside_window(math.floor(center)), name, beta)
        gaussian = [math.exp(-((key - center) ** 2) / (2 * (window / 2) ** 2)) for key in range(n_keys)]
        weights = [w * g for w, g in zip(weights, gaussian, strict=True)]
        total = sum(weights)
        return [w / total for w in weights] if settings.get("renormalize") and total else weights
    weights = normalize(scores, allowed, name, beta)
    if placement == "hard" and settings.get("hard_inference", "expectation") != "expectation":
        sample = round(extras["sample"])
        return [float(key == sample) for key in range(n_keys)]
    return weights

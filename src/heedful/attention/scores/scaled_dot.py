"""Scaled dot-product attention (Vaswani 2017)."""

from __future__ import annotations

import math

from heedful.attention.scores.dot import Dot


class ScaledDot(Dot):
    """`q . k_i / sqrt(d)` (Vaswani 2017, eq. 1): the scaling keeps the variance of the scores independent of d."""

    @property
    def scale(self) -> float:
        return 1.0 / math.sqrt(self.key_size)


SCORE = ScaledDot

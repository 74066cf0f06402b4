"""`replay` of a recommendation: from item vectors and weights to each score, in plain loops."""

from __future__ import annotations

import math

import numpy as np

from heedful.record import Looks
from heedful.trace.loops import Rows, dot, mixture
from heedful.trace.replay import Replay, apart


class HistoryReplay(Replay):
    """Looks are redone as everybody's; what follows them is `b_i + p_i . sum_j a_ij q_j`."""

    def _module(self, looks: Looks) -> str:
        parts = looks.site.split(".")
        return f"layers.{parts[1]}.self_attention" if parts[0] == "enc" else "attention"

    def _values(self, looks: Looks, queries: Rows) -> Rows:
        return queries if looks.kind == "self" else self.source

    def output(self) -> tuple[float, float]:
        """Differences of the vectors that were asked with and read, and of the log-probabilities."""
        trace = self.trace
        items = [self._token(t) for t in range(len(trace.steps))]
        if self.has("counts"):
            counts = self.get("counts")
            return 0.0, max(
                abs(math.log(max(counts[item] / sum(counts), 1e-12)) - step.logp)
                for item, step in zip(items, trace.steps, strict=True)
            )
        looks, vectors = trace.looks(), self.get("target.weight")
        weights = trace.weights()
        said = worst = 0.0
        if not self.has("layers.0.feed_forward.0.weight"):
            taken = self.get("taken.weight")
            read = [taken[token.id] for token in trace.source.tokens if token.id is not None]
            said = max(apart(a, np.asarray(b)) for a, b in zip(read, self.source, strict=True))
        for t, (item, step) in enumerate(zip(items, trace.steps, strict=True)):
            context = mixture(weights[t, 0].tolist(), self.source)
            if looks.heads > 1 and looks.context is not None:
                context = self._joined(trace.by_head(looks.context)[t].ravel().tolist())
            score = self.get("bias")[item] + dot(vectors[item], context)
            worst = max(worst, abs(_log_sigmoid(score) - step.logp))
        return said, worst

    def _joined(self, heads: list[float]) -> list[float]:
        matrix, bias = self.get("attention.heads.out.weight"), self.get("attention.heads.out.bias")
        return [dot(row, heads) + b for row, b in zip(matrix, bias, strict=True)]


def _log_sigmoid(x: float) -> float:
    """
    >>> round(_log_sigmoid(0.0), 3), _log_sigmoid(-1000.0)
    (-0.693, -1000.0)
    """
    return min(x, 0.0) - math.log1p(math.exp(-abs(x)))

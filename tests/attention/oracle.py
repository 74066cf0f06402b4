"""The oracle put together: from the names of a mechanism and its parameters to what a look must give.

Only plain lists and `reference` are used; a name in a table of `heedful` without an entry here turns
`test_names.py` red.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from attention import reference
from attention.helpers import BETA, COVERED, WINDOW
from attention.reference import Keep, Matrix, Normaliser, Vector
from heedful.attention import Attention

Parameters = Mapping[str, Any]  # names as in the state dict, tensors as lists

# (parameters of the score, query, keys, coverage) -> one score per key
SCORE_ORACLES: dict[str, Callable[[Parameters, Vector, Matrix, Vector], Vector]] = {
    "additive": lambda p, q, ks, _: reference.additive(q, ks, p["query.weight"], p["key.weight"], p["v"]),
    COVERED: lambda p, q, ks, c: reference.additive_coverage(
        q, ks, p["query.weight"], p["key.weight"], p["v"], p["w_c"], c
    ),
    "concat": lambda p, q, ks, _: reference.concat(q, ks, p["both.weight"], p["v"]),
    "dot": lambda p, q, ks, _: reference.dot(q, ks),
    "scaled-dot": lambda p, q, ks, _: reference.scaled_dot(q, ks),
    "general": lambda p, q, ks, _: reference.general(q, ks, p["key.weight"]),
    "location": lambda p, q, ks, _: reference.location(q, len(ks), p["rows.weight"]),
    "prod-relu": lambda p, q, ks, _: reference.prod_relu(
        q, ks, p["product.weight"], p["product.bias"], p["h"]
    ),
    "concat-relu": lambda p, q, ks, _: reference.concat_relu(q, ks, p["both.weight"], p["both.bias"], p["h"]),
}

NORMALISER_ORACLES: dict[str, Normaliser] = {
    "softmax": reference.softmax,
    "smoothed-softmax": partial(reference.smoothed_softmax, beta=BETA),
    "sparsemax": reference.sparsemax,
    "entmax15": reference.entmax15,
}


class Glance(NamedTuple):
    """What a placement may know of one query of one head."""

    p: Parameters
    q: Vector
    scores: Vector
    source: Keep  # what of the source may be read by anybody: it says T
    allowed: Keep  # what this query may read
    t: int
    normaliser: Normaliser
    sample: int  # the position that was drawn


Placed = tuple[Vector, dict[str, Any]]


def _local_m(g: Glance) -> Placed:
    near = reference.local_m_keep(g.t, g.source, WINDOW)
    extra = {"centre": min(g.t, reference.length(g.source) - 1)}
    return g.normaliser(g.scores, _both(near, g.allowed)), extra


def _local_p(g: Glance, renormalise: bool) -> Placed:
    def normaliser(scores: Vector, near: Keep) -> Vector:
        return g.normaliser(scores, _both(near, g.allowed))

    W, v = g.p["inner.weight"], g.p["outer.weight"][0]
    weights, centre = reference.local_p(g.q, g.scores, g.source, WINDOW, W, v, normaliser, renormalise)
    return weights, {"centre": centre}


def _hard(g: Glance, how: str) -> Placed:
    alpha = g.normaliser(g.scores, g.allowed)
    best, index = reference.hard_argmax(alpha)
    index = g.sample if how == "sample" else index
    assert index == -1 or alpha[index] > 0.0, "a position without weight was drawn"
    assert (index == -1) == (not any(g.allowed)), "-1 is drawn where nothing can be read and only there"
    one = reference.hard_sample(alpha, index) if how == "sample" else best
    extra = {
        "alpha": alpha,
        "sample": index,
        "logp": reference.log_probability(alpha, index),
        "entropy": reference.entropy(alpha),
    }
    return alpha if how == "expectation" else one, extra


PLACEMENT_ORACLES: dict[str, Callable[[Glance], Placed]] = {
    "global": lambda g: (g.normaliser(g.scores, g.allowed), {}),
    "local-m": _local_m,
    "local-p": partial(_local_p, renormalise=False),
    "local-p renormalised": partial(_local_p, renormalise=True),
    "hard sample": partial(_hard, how="sample"),
    "hard argmax": partial(_hard, how="argmax"),
    "hard expectation": partial(_hard, how="expectation"),
    "uniform": lambda g: (reference.uniform(g.allowed), {}),
}


class Expected(NamedTuple):
    """What one query of one sentence must see; scores, weights and extras begin with the head."""

    scores: Matrix
    weights: Matrix
    context: Vector
    extra: dict[str, list[Any]]
    coverage: Matrix


class Sight(NamedTuple):
    """One query and the sentence it looks at."""

    q: Vector
    keys: Matrix
    values: Matrix
    source: Keep
    allowed: Keep
    t: int
    coverage: Matrix  # per head
    samples: list[int]  # per head


@dataclass(frozen=True)
class Oracle:
    """One attention, once more in plain loops."""

    score: str
    normaliser: str
    placement: str
    heads: int  # 0: one look without projections
    parameters: Parameters

    @staticmethod
    def of(attention: Attention, score: str, normaliser: str, placement: str, heads: int = 0) -> Oracle:
        parameters = {name: value.tolist() for name, value in attention.state_dict().items()}
        return Oracle(score, normaliser, placement, heads, parameters)

    def look(self, sight: Sight) -> Expected:
        q, keys, values = self._projected(sight)
        result = Expected([], [], [], {}, [])
        joined: Vector = []
        for head in range(max(self.heads, 1)):
            scores, weights, extra = self._one_head(sight, q[head], keys[head], head)
            result.scores.append(scores)
            result.weights.append(weights)
            joined += reference.context(weights, values[head])
            for name, value in extra.items():
                result.extra.setdefault(name, []).append(value)
            result.coverage.append(reference.coverage_update(sight.coverage[head], weights))
        read = any(any(weights) for weights in result.weights)
        return result._replace(context=self._joined(joined, read))

    def _one_head(
        self, sight: Sight, q: Vector, keys: Matrix, head: int
    ) -> tuple[Vector, Vector, dict[str, Any]]:
        scores = SCORE_ORACLES[self.score](self._of("score."), q, keys, sight.coverage[head])
        glance = Glance(
            self._of("placement."),
            q,
            scores,
            sight.source,
            _both(sight.source, sight.allowed),
            sight.t,
            NORMALISER_ORACLES[self.normaliser],
            sight.samples[head],
        )
        weights, extra = PLACEMENT_ORACLES[self.placement](glance)
        if self.score == COVERED:
            extra = {**extra, "coverage_loss": reference.coverage_loss(weights, sight.coverage[head])}
        return scores, weights, extra

    def _projected(self, sight: Sight) -> tuple[Matrix, list[Matrix], list[Matrix]]:
        """Query, keys and values, each by head."""
        if not self.heads:
            return [sight.q], [sight.keys], [sight.values]
        p = self._of("heads.")

        def split(vector: Vector, name: str) -> Matrix:
            projected = reference.affine(p[f"{name}.weight"], vector, p[f"{name}.bias"])
            return [reference.head_slice(projected, head, self.heads) for head in range(self.heads)]

        def by_head(vectors: Matrix, name: str) -> list[Matrix]:
            parts = [split(vector, name) for vector in vectors]
            return [[part[head] for part in parts] for head in range(self.heads)]

        return split(sight.q, "to_query"), by_head(sight.keys, "to_key"), by_head(sight.values, "to_value")

    def _joined(self, joined: Vector, read: bool) -> Vector:
        if not self.heads:
            return joined
        W, b = self.parameters["heads.out.weight"], self.parameters["heads.out.bias"]
        return reference.affine(W, joined, b) if read else [0.0] * len(W)  # not the bias of the join

    def _of(self, part: str) -> Parameters:
        return {name.removeprefix(part): p for name, p in self.parameters.items() if name.startswith(part)}


def _both(left: Keep, right: Keep) -> Keep:
    return [a and b for a, b in zip(left, right, strict=True)]

"""The oracle: from the names of a mechanism and its parameters to the output that attention must give.

It uses plain loops over lists alone: `reference`, and for scores `heedful.trace.plain_scores`, which replays traces
with them. Neither shares code with the attention room. `test_contract.py` fails for a name without an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from attention import reference
from attention.helpers import BETA, COVERED, WINDOW
from attention.reference import Keep, Matrix, Normalizer, Vector
from heedful.attention import Attention
from heedful.trace.plain_scores import score_keys

Parameters = Mapping[str, Any]  # names as in the state dict, tensors as lists

NORMALIZER_ORACLES: dict[str, Normalizer] = {
    "softmax": reference.softmax,
    "smoothed-softmax": partial(reference.smoothed_softmax, beta=BETA),
    "sparsemax": reference.sparsemax,
    "entmax15": reference.entmax15,
}


class HeadCase(NamedTuple):
    """What a placement may use: one query of one head."""

    p: Parameters
    q: Vector
    scores: Vector
    source: Keep  # the source's own mask, from which T follows
    allowed: Keep  # the keys that this query may read
    t: int
    normalizer: Normalizer
    sample: int  # the sampled position


Placed = tuple[Vector, dict[str, Any]]


def _local_m(g: HeadCase) -> Placed:
    near = reference.local_m_keep(g.t, g.source, WINDOW)
    extras = {"center": min(g.t, reference.length(g.source) - 1)}
    return g.normalizer(g.scores, _both(near, g.allowed)), extras


def _local_p(g: HeadCase, renormalize: bool) -> Placed:
    def normalizer(scores: Vector, near: Keep) -> Vector:
        return g.normalizer(scores, _both(near, g.allowed))

    W, v = g.p["inner.weight"], g.p["outer.weight"][0]
    weights, center = reference.local_p(g.q, g.scores, g.source, WINDOW, W, v, normalizer, renormalize)
    return weights, {"center": center}


def _hard(g: HeadCase, mode: str) -> Placed:
    alpha = g.normalizer(g.scores, g.allowed)
    best, index = reference.hard_argmax(alpha)
    index = g.sample if mode == "sample" else index
    assert index == -1 or alpha[index] > 0.0, "a position without weight was sampled"
    assert (index == -1) == (not any(g.allowed)), "-1 stands for no readable key, and only for that"
    one = reference.hard_sample(alpha, index) if mode == "sample" else best
    extras = {
        "alpha": alpha,
        "sample": index,
        "logp": reference.log_probability(alpha, index),
        "entropy": reference.entropy(alpha),
    }
    return alpha if mode == "expectation" else one, extras


PLACEMENT_ORACLES: dict[str, Callable[[HeadCase], Placed]] = {
    "global": lambda g: (g.normalizer(g.scores, g.allowed), {}),
    "local-m": _local_m,
    "local-p": partial(_local_p, renormalize=False),
    "local-p renormalized": partial(_local_p, renormalize=True),
    "hard sample": partial(_hard, mode="sample"),
    "hard argmax": partial(_hard, mode="argmax"),
    "hard expectation": partial(_hard, mode="expectation"),
    "uniform": lambda g: (reference.uniform(g.allowed), {}),
}


class Expected(NamedTuple):
    """The expected output of one query; scores, weights and extras are per head."""

    scores: Matrix
    weights: Matrix
    context: Vector
    extras: dict[str, list[Any]]
    coverage: Matrix


class QueryCase(NamedTuple):
    """One query and its sentence."""

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
    """One attention, computed again in plain loops."""

    score: str
    normalizer: str
    placement: str
    heads: int  # 0: one head without projections
    parameters: Parameters

    @staticmethod
    def of(attention: Attention, score: str, normalizer: str, placement: str, heads: int = 0) -> Oracle:
        parameters = {name: value.tolist() for name, value in attention.state_dict().items()}
        return Oracle(score, normalizer, placement, heads, parameters)

    def attend(self, case: QueryCase) -> Expected:
        q, keys, values = self._projected(case)
        result = Expected([], [], [], {}, [])
        joined: Vector = []
        for head in range(max(self.heads, 1)):
            scores, weights, extras = self._one_head(case, q[head], keys[head], head)
            result.scores.append(scores)
            result.weights.append(weights)
            joined += reference.context(weights, values[head])
            for name, value in extras.items():
                result.extras.setdefault(name, []).append(value)
            result.coverage.append(reference.coverage_update(case.coverage[head], weights))
        attended = any(any(weights) for weights in result.weights)
        return result._replace(context=self._joined(joined, attended))

    def _one_head(self, case: QueryCase, q: Vector, keys: Matrix, head: int) -> tuple[Vector, Vector, dict[str, Any]]:
        scores = self._scores(q, keys, case.coverage[head])
        head_case = HeadCase(
            self._of("placement."),
            q,
            scores,
            case.source,
            _both(case.source, case.allowed),
            case.t,
            NORMALIZER_ORACLES[self.normalizer],
            case.samples[head],
        )
        weights, extras = PLACEMENT_ORACLES[self.placement](head_case)
        if self.score == COVERED:
            extras = {**extras, "coverage_loss": reference.coverage_loss(weights, case.coverage[head])}
        return scores, weights, extras

    def _scores(self, q: Vector, keys: Matrix, coverage: Vector) -> Vector:
        name = "additive" if self.score == COVERED else self.score
        return score_keys(name, q, keys, self._of("score.").get, coverage)

    def _projected(self, case: QueryCase) -> tuple[Matrix, list[Matrix], list[Matrix]]:
        """Return query, keys and values by head."""
        if not self.heads:
            return [case.q], [case.keys], [case.values]
        p = self._of("heads.")

        def split(vector: Vector, name: str) -> Matrix:
            projected = reference.affine(p[f"{name}.weight"], vector, p[f"{name}.bias"])
            return [reference.head_slice(projected, head, self.heads) for head in range(self.heads)]

        def by_head(vectors: Matrix, name: str) -> list[Matrix]:
            parts = [split(vector, name) for vector in vectors]
            return [[part[head] for part in parts] for head in range(self.heads)]

        return (
            split(case.q, "to_query"),
            by_head(case.keys, "to_key"),
            by_head(case.values, "to_value"),
        )

    def _joined(self, joined: Vector, attended: bool) -> Vector:
        if not self.heads:
            return joined
        W, b = self.parameters["heads.out.weight"], self.parameters["heads.out.bias"]
        return reference.affine(W, joined, b) if attended else [0.0] * len(W)  # not the bias of the output projection

    def _of(self, part: str) -> Parameters:
        return {name.removeprefix(part): p for name, p in self.parameters.items() if name.startswith(part)}


def _both(left: Keep, right: Keep) -> Keep:
    return [a and b for a, b in zip(left, right, strict=True)]

"""The words of a classified text with their weights, and its most likely labels."""

from __future__ import annotations

import math
from typing import NamedTuple

from heedful.errors import TraceError
from heedful.trace.schema import Trace
from heedful.viz.base import ViewOptions

MAX_LABELS = 8


class WeightedText(NamedTuple):
    """The words of a text with their weights, which of them are gold, and labels with their probabilities."""

    words: list[str]
    weights: list[float]
    gold: frozenset[int]
    labels: list[tuple[str, float]]
    label: str

    @property
    def shades(self) -> list[float]:
        """Each weight relative to the largest."""
        largest = max(self.weights, default=0.0)
        return [weight / largest if largest > 0 else 0.0 for weight in self.weights]


def weigh_words(trace: Trace, options: ViewOptions) -> WeightedText:
    """Return the weighted words of a classified text; start and end tokens are left out."""
    table = trace.table(options.site, options.head, words=options.words, specials=False)
    if trace.site(options.site).query_side != "target" or len(table.rows) != 1:
        raise TraceError(
            f"words: needs a text with one label, but this trace has {len(table.rows)} queries; use --view alignment"
        )
    step = trace.steps[0]
    labels = [(candidate.text, math.exp(candidate.logp)) for candidate in step.top[:MAX_LABELS]]
    labels = labels or [(trace.target.text, math.exp(step.logp))]
    weights = [float(weight) for weight in table.weights[0]]
    return WeightedText(table.columns, weights, frozenset(c for _, c in table.gold), labels, trace.target.text)

"""Metrics with signatures, metrics by length and by position, and significance tests."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.errors import DataError
from heedful.metrics.buckets import LengthBucket, RecallBin, choose_edges, metric_by_length, recall_by_position
from heedful.metrics.error_rates import (
    edit_distance,
    exact_match,
    line_error_rate,
    symbol_error_rate,
    word_error_rate,
)
from heedful.metrics.rouge import rouge
from heedful.metrics.significance import Comparison, compare_states, paired_bootstrap, paired_randomization
from heedful.metrics.state import Metric, MetricSpec, MetricState, References, StateFunction, list_references
from heedful.metrics.surprisal import PerplexityBin, bits_per_character, perplexity, perplexity_by_position
from heedful.metrics.table import (
    METRICS,
    check_metric_names,
    expand_groups,
    find_metric,
    get_metric,
    higher_is_better,
    metric_names,
    primary_metric,
)
from heedful.metrics.translation import bleu, chrf, ter
from heedful.metrics.words import split_words


def evaluate(names: Sequence[str], outputs: Sequence[str], references: References) -> list[Metric]:
    """Return the metrics of these names, in this order; unknown names raise a DataError before any is computed.

    >>> for metric in evaluate(["exact", "line-error"], ["a", "b"], ["a", "c"]):
    ...     print(metric.name, metric.format())
    exact match 50.00 %
    line error rate 50.00 %
    """
    names = [names] if isinstance(names, str) else names
    check_metric_names(names)
    if not names:
        raise DataError(f"no metric given; known: {', '.join(metric_names())}")
    list_references(outputs, references)
    return [get_metric(name)(outputs, references) for name in expand_groups(names)]


__all__ = [
    "METRICS",
    "Comparison",
    "LengthBucket",
    "Metric",
    "MetricSpec",
    "MetricState",
    "PerplexityBin",
    "RecallBin",
    "References",
    "StateFunction",
    "bits_per_character",
    "bleu",
    "check_metric_names",
    "choose_edges",
    "chrf",
    "compare_states",
    "edit_distance",
    "evaluate",
    "exact_match",
    "find_metric",
    "get_metric",
    "higher_is_better",
    "line_error_rate",
    "metric_by_length",
    "metric_names",
    "paired_bootstrap",
    "paired_randomization",
    "perplexity",
    "perplexity_by_position",
    "primary_metric",
    "recall_by_position",
    "rouge",
    "split_words",
    "symbol_error_rate",
    "ter",
    "word_error_rate",
]

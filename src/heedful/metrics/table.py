"""The table of metrics: every name a user can type, its direction, aliases and unit.

A new metric is a state function and a MetricSpec in a file of its own, and one line here. Users add theirs with
`heedful.register("metric", name, spec)`, where `spec` is a MetricSpec or a state function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from heedful import registry
from heedful.errors import DataError, nearest
from heedful.metrics import captions, classification, error_rates, meteor, moses, ranking, rouge, surprisal, translation
from heedful.metrics.state import MetricSpec, StateFunction

_LOSS = MetricSpec(
    "loss", None, "training loss per token on the validation data", higher_is_better=False, takes_text=False
)

METRICS: dict[str, MetricSpec] = {
    spec.name: spec
    for spec in (
        translation.BLEU,
        translation.BLEU_LC,
        translation.CHRF,
        translation.TER,
        moses.BLEU_MOSES,
        *rouge.ROUGE_METRICS,
        error_rates.EXACT,
        error_rates.LINE_ERROR,
        error_rates.SYMBOL_ERROR,
        error_rates.WORD_ERROR,
        *captions.CAPTION_METRICS,
        meteor.METEOR,
        classification.ACCURACY,
        classification.MACRO_F1,
        classification.WEIGHTED_F1,
        ranking.HIT_RATE,
        ranking.NDCG,
        surprisal.PERPLEXITY,
        surprisal.BITS_PER_CHARACTER,
        _LOSS,
    )
}
GROUPS: dict[str, tuple[str, ...]] = {"rouge": tuple(spec.name for spec in rouge.ROUGE_METRICS)}
_PARAMETER = re.compile(r"([\w-]+)[:@](.+)")


def find_metric(name: str) -> MetricSpec | None:
    """Return the metric with this name, alias or "name:parameter"; None if there is none."""
    for spec in METRICS.values():
        if name in spec.aliases:
            return spec.with_options(**spec.aliases[name])
    base, value = match.groups() if (match := _PARAMETER.fullmatch(name)) else (name, "")
    if not registry.is_known("metric", base):
        return None
    spec = _as_spec(base, registry.get("metric", base))
    if not spec.parameter:
        return None if value else spec
    accepted = value in spec.parameter_values if spec.parameter_values else bool(value)
    return spec.with_options(**{spec.parameter: value}) if accepted else None


def get_metric(metric: str | MetricSpec | StateFunction) -> MetricSpec:
    """Return the text metric of this name; raise DataError if there is none. A state function is wrapped."""
    if not isinstance(metric, str):
        return _as_spec(getattr(metric, "__name__", "metric"), metric)
    spec = find_metric(metric)
    if spec is None or not spec.takes_text:
        raise DataError(_explain_unknown(metric, [name for name in metric_names() if name not in GROUPS]))
    return spec


def _as_spec(name: str, metric: MetricSpec | StateFunction) -> MetricSpec:
    """Wrap a state function, which is better when higher."""
    if isinstance(metric, MetricSpec):
        return metric
    return MetricSpec(name, metric, (metric.__doc__ or "").partition("\n")[0])


def expand_groups(names: Iterable[str]) -> list[str]:
    """Replace names of groups by the metrics in them.

    >>> expand_groups(["exact", "rouge"])
    ['exact', 'rouge-1', 'rouge-2', 'rouge-l']
    """
    return [metric for name in names for metric in GROUPS.get(name, (name,))]


def metric_names() -> list[str]:
    """Return what can be typed for text metrics: names, groups, and one example for each parameter."""
    names = []
    for name in registry.known_names("metric"):
        spec = _as_spec(name, registry.get("metric", name))
        if spec.takes_text:
            names.append(f"{name}:{spec.parameter_values[0]}" if spec.parameter else name)
    return [*names, *GROUPS, *(alias for spec in METRICS.values() for alias in spec.aliases)]


def check_metric_names(names: Sequence[str]) -> None:
    """Raise DataError that lists all names that are not text metrics."""
    unknown = []
    for name in names:
        spec = find_metric(name)
        if name not in GROUPS and (spec is None or not spec.takes_text):
            unknown.append(_explain_unknown(name, metric_names()))
    if unknown:
        raise DataError("\n".join(unknown))


def _explain_unknown(name: str, known: Sequence[str]) -> str:
    base, _, value = name.partition(":")
    if base in METRICS and (spec := METRICS[base]).parameter_values:
        return f'"{name}": expected {base}:{spec.parameter.upper()}; {nearest(value, spec.parameter_values)}'
    return f'"{name}": no such metric; {nearest(name, known)}'


def primary_metric(names: Sequence[str], default: str = "exact") -> str:
    """Return the first of these metrics that can be resampled; two systems are compared by it.

    >>> primary_metric(["meteor", "rouge", "exact"]), primary_metric([], "bleu")
    ('rouge-l', 'bleu')
    """
    for name in names:
        if name in GROUPS:
            return GROUPS[name][-1]
        spec = find_metric(name)
        if spec is not None and spec.takes_text and spec.state_function is not None:
            return name
    return default


def higher_is_better(name: str) -> bool:
    """Return the direction of a metric; values that only a task knows are better when higher.

    >>> higher_is_better("bleu"), higher_is_better("wer"), higher_is_better("hr@10:all"), higher_is_better("loss")
    (True, False, True, False)
    """
    spec = find_metric(name)
    return spec is None or spec.higher_is_better

"""The table of metrics, and lookup by the names and aliases that users type.

To add a metric, define its state function and its MetricSpec in a file of its own, and list the spec here. Users add
their own with `heedful.register("metric", name, spec)`, where `spec` is a MetricSpec or a state function.
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
_NAME_AND_PARAMETER = re.compile(r"([\w-]+)[:@](.+)")  # such as "bleu-moses:de" or "hr@10"


def find_metric(name: str) -> MetricSpec | None:
    """Return the metric of a name, an alias or "name:parameter"; None if there is no such metric."""
    for spec in METRICS.values():
        if name in spec.aliases:
            return spec.with_options(**spec.aliases[name])
    base, value = match.groups() if (match := _NAME_AND_PARAMETER.fullmatch(name)) else (name, "")
    if not registry.is_known("metric", base):
        return None
    spec = _as_spec(base, registry.get("metric", base))
    if not spec.parameter:
        return None if value else spec
    is_valid = value in spec.parameter_values if spec.parameter_values else bool(value)
    return spec.with_options(**{spec.parameter: value}) if is_valid else None


def get_metric(metric: str | MetricSpec | StateFunction) -> MetricSpec:
    """Return the text metric of this name, or the spec of a state function; raise a DataError for unknown names."""
    if not isinstance(metric, str):
        return _as_spec(getattr(metric, "__name__", "metric"), metric)
    spec = find_metric(metric)
    if spec is None or not spec.takes_text:
        raise DataError(_explain_unknown(metric, [name for name in metric_names() if name not in GROUPS]))
    return spec


def _as_spec(name: str, metric: MetricSpec | StateFunction) -> MetricSpec:
    """Return the spec; for a state function a new one, in which higher values are better."""
    if isinstance(metric, MetricSpec):
        return metric
    return MetricSpec(name, metric, (metric.__doc__ or "").partition("\n")[0])


def expand_groups(names: Iterable[str]) -> list[str]:
    """Replace each group, such as "rouge", by the metrics in it.

    >>> expand_groups(["exact", "rouge"])
    ['exact', 'rouge-1', 'rouge-2', 'rouge-l']
    """
    return [metric for name in names for metric in GROUPS.get(name, (name,))]


def metric_names() -> list[str]:
    """Return the names of all text metrics, groups and aliases; a parameter is shown by an example value."""
    names = []
    for name in registry.known_names("metric"):
        spec = _as_spec(name, registry.get("metric", name))
        if spec.takes_text:
            names.append(f"{name}:{spec.parameter_values[0]}" if spec.parameter else name)
    return [*names, *GROUPS, *(alias for spec in METRICS.values() for alias in spec.aliases)]


def check_metric_names(names: Sequence[str]) -> None:
    """Raise a DataError that lists all names that are not text metrics or groups."""
    unknown = []
    for name in names:
        spec = find_metric(name)
        if name not in GROUPS and (spec is None or not spec.takes_text):
            unknown.append(_explain_unknown(name, metric_names()))
    if unknown:
        raise DataError("\n".join(unknown))


def _explain_unknown(name: str, known: Sequence[str]) -> str:
    """Return the error message for an unknown metric, or for one with a missing or unknown parameter."""
    base, _, value = name.partition(":")
    if base in METRICS and (spec := METRICS[base]).parameter_values:
        return f'"{name}": expected {base}:{spec.parameter.upper()}; {nearest(value, spec.parameter_values)}'
    return f'"{name}": no such metric; {nearest(name, known)}'


def primary_metric(names: Sequence[str], default: str = "exact") -> str:
    """Return the metric for significance tests: the first of these that can be resampled, else the default.

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
    """Return True if higher values of a metric are better, which is assumed of metrics that are not in the table.

    >>> higher_is_better("bleu"), higher_is_better("wer"), higher_is_better("hr@10:all"), higher_is_better("loss")
    (True, False, True, False)
    """
    spec = find_metric(name)
    return spec is None or spec.higher_is_better

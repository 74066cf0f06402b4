"""How good the outputs are: measures that sign how they measured, where quality is lost, and chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heedful.errors import DataError, nearest
from heedful.evaluation.buckets import LengthBucket, Place, by_length, by_place, choose_edges
from heedful.evaluation.meteor import meteor
from heedful.evaluation.moses import LANGUAGES
from heedful.evaluation.rates import (
    edit_distance,
    exact_match,
    line_error_rate,
    perplexity,
    symbol_error_rate,
    word_error_rate,
)
from heedful.evaluation.rouge import rouge
from heedful.evaluation.significance import Comparison, compared, paired_bootstrap, paired_randomisation
from heedful.evaluation.surprisal import (
    PositionBucket,
    bits_per_character,
    by_position,
    perplexity_tally,
)
from heedful.evaluation.table import MOSES, TALLIES, main_of, maker
from heedful.evaluation.tally import Maker, Metric, References, Tally, per_output
from heedful.evaluation.translation import bleu, chrf, ter
from heedful.evaluation.words import words

Measure = Callable[[Sequence[str], References], list[Metric]]


def _single(name: str) -> Measure:
    make = maker(name)
    return lambda outputs, references: [make(outputs, references).metric()]


_moses = [MOSES + language for language in LANGUAGES]
METRICS: dict[str, Measure] = {
    **{name: _single(name) for name in (*TALLIES, *_moses)},
    "rouge": rouge,
    "meteor": lambda outputs, references: [meteor(outputs, references)],
}
USUAL = (*TALLIES, "rouge", "meteor", MOSES + "de")  # one language stands for all


def check_names(names: Sequence[str]) -> None:
    """Refuse names of no metric, all of them at once."""
    unknown = [f'"{name}": no such metric; {nearest(name, USUAL)}' for name in names if name not in METRICS]
    if unknown:
        raise DataError("\n".join(unknown))


def evaluate(names: Sequence[str], outputs: Sequence[str], references: References) -> list[Metric]:
    """The metrics of these names, in their order. Every unknown name is told before any work is done.

    >>> for metric in evaluate(["exact", "line-error"], ["a", "b"], ["a", "c"]):
    ...     print(metric.name, metric.value)
    exact match 50.0
    line error rate 50.0
    """
    asked = [names] if isinstance(names, str) else names
    check_names(asked)
    if not asked:
        raise DataError(f"no metric asked for; known: {', '.join(USUAL)}")
    per_output(outputs, references)
    return [metric for name in asked for metric in METRICS[name](outputs, references)]


__all__ = [
    "METRICS",
    "TALLIES",
    "check_names",
    "evaluate",
    "main_of",
    "Metric",
    "Tally",
    "Maker",
    "References",
    "bleu",
    "chrf",
    "ter",
    "rouge",
    "exact_match",
    "line_error_rate",
    "symbol_error_rate",
    "word_error_rate",
    "edit_distance",
    "perplexity",
    "words",
    "LengthBucket",
    "by_length",
    "choose_edges",
    "Place",
    "by_place",
    "Comparison",
    "compared",
    "PositionBucket",
    "bits_per_character",
    "by_position",
    "perplexity_tally",
    "paired_bootstrap",
    "paired_randomisation",
]

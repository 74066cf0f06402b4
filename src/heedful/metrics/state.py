"""The types of all metrics: a row of counts per item, and a function of the summed counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError

References: TypeAlias = Sequence[str] | Sequence[Sequence[str]]
"""One reference per output, or a list of references per output (their number may differ)."""

Counts: TypeAlias = NDArray[np.float64]


class Metric(NamedTuple):
    """The value of a metric and its signature, which says how it was computed.

    Two values are comparable only if their signatures are equal.
    """

    name: str
    value: float
    signature: str = ""
    higher_is_better: bool = True
    unit: str = ""
    decimals: int = 2

    def format(self) -> str:
        """Return the value with its unit.

        >>> Metric("exact match", 50.0, unit="%").format()
        '50.00 %'
        """
        return f"{self.value:.{self.decimals}f}" + (f" {self.unit}" if self.unit else "")

    def to_dict(self) -> dict[str, Any]:
        """Return the metric as a dict for JSON."""
        return {name: value for name, value in self._asdict().items() if name != "decimals"}


@dataclass(frozen=True, slots=True)
class MetricState:
    """The counts of a corpus metric, before they are summed.

    Corpus BLEU is not a mean over sentences, but a function of summed counts, as all metrics here are. So the rows
    give the metric of the corpus, of a bucket and of a bootstrap sample, and the text is tokenized only once.
    `higher_is_better`, `unit` and `decimals` come from the MetricSpec.
    """

    name: str
    rows: Counts  # item x count
    score: Callable[[Counts], float]  # of the summed rows
    signature: str = ""
    higher_is_better: bool = True
    unit: str = ""
    decimals: int = 2

    def metric(self, items: Sequence[int] | None = None) -> Metric:
        """Return the metric over these items; None is all of them."""
        rows = self.rows if items is None else self.rows[np.asarray(items, dtype=np.intp)]
        value = self.score(rows.sum(axis=0))
        return Metric(self.name, value, self.signature, self.higher_is_better, self.unit, self.decimals)


StateFunction: TypeAlias = Callable[..., MetricState]
"""A function from outputs and references to their counts, such as `bleu_state`."""


@dataclass(frozen=True)
class MetricSpec:
    """An entry of the metrics table.

    `state_function` counts outputs against references. `parameter` is the option whose value users append to the
    name, as in "bleu-moses:de". `aliases` maps other names to options of the state function.
    """

    name: str  # what users type
    state_function: StateFunction | None  # None: the task computes the value
    help: str
    higher_is_better: bool = True
    unit: str = ""
    decimals: int = 2
    aliases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    parameter: str = ""
    parameter_values: tuple[str, ...] = ()
    corpus_function: Callable[..., Metric] | None = None  # for metrics that cannot be split into items
    takes_text: bool = True  # outputs and references; otherwise ranks or log-probabilities

    def state(self, *inputs: Any, **options: Any) -> MetricState:
        """Return the counts of each item."""
        if self.state_function is None:
            raise DataError(f"{self.name}: is not a sum over items, so it has no buckets and no significance test")
        state = self.state_function(*inputs, **{**self.options, **options})
        return replace(state, higher_is_better=self.higher_is_better, unit=self.unit, decimals=self.decimals)

    def __call__(self, *inputs: Any, **options: Any) -> Metric:
        """Return the metric of a corpus."""
        if self.corpus_function is not None:
            return self.corpus_function(*inputs, **{**self.options, **options})
        return self.state(*inputs, **options).metric()

    def with_options(self, **options: Any) -> MetricSpec:
        """Return this metric with other defaults."""
        return replace(self, options={**self.options, **options}, aliases={}, parameter="")


def percent(total: Counts) -> float:
    """Return 100 times the first count over the second.

    If the second is 0 (no symbol in any reference), any output is entirely wrong: 100.

    >>> percent(np.array([1.0, 4.0])), percent(np.array([2.0, 0.0])), percent(np.array([0.0, 0.0]))
    (25.0, 100.0, 0.0)
    """
    part, total_count = float(total[0]), float(total[1])
    if total_count > 0:
        return 100 * part / total_count
    return 100.0 if part > 0 else 0.0


def list_references(outputs: Sequence[str], references: References) -> list[tuple[str, ...]]:
    """Return the references of each output, after checking that outputs and references pair up.

    >>> list_references(["a", "b"], ["A", ["B", "bee"]])
    [('A',), ('B', 'bee')]
    """
    for side, lines in (("outputs", outputs), ("references", references)):
        if isinstance(lines, str):
            raise DataError(f"{side}: expected a list of lines, got one string: {lines[:60]!r}")
    if len(outputs) != len(references):
        raise DataError(
            f"{len(outputs)} outputs but {len(references)} references: expected one reference per output"
            " (several references of one output are a list in its place)"
        )
    if not outputs:
        raise DataError("nothing to evaluate: 0 outputs and 0 references")
    listed = [(item,) if isinstance(item, str) else tuple(item) for item in references]
    for number, (output, alternatives) in enumerate(zip(outputs, listed, strict=True), 1):
        if not isinstance(output, str):
            raise DataError(f"output {number} is not text: {output!r}")
        if not alternatives:
            raise DataError(f"output {number} has no reference: every output needs at least one")
        for reference in alternatives:
            if not isinstance(reference, str):
                raise DataError(f"reference {number} is not text: {reference!r}")
    return listed


def single_references(metric: str, outputs: Sequence[str], references: References) -> list[str]:
    """Return the one reference of each output, for metrics that are undefined with several."""
    listed = list_references(outputs, references)
    for number, alternatives in enumerate(listed, 1):
        if len(alternatives) != 1:
            raise DataError(f"{metric} takes one reference per output; output {number} has {len(alternatives)}")
    return [alternatives[0] for alternatives in listed]

"""Results of evaluations and measurements as Python users see them: short to print, easy to look into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heedful.errors import ArgumentError, nearest
from heedful.metrics import Comparison
from heedful.tasks.base import EvaluationResult


class Evaluation(Mapping[str, float]):
    """The metrics of a model on some data, by name; print it for signatures and breakdowns.

    result = model.evaluate(pairs)
    result["BLEU"]
    result.compare_to(other.evaluate(pairs)).p
    """

    def __init__(self, result: EvaluationResult) -> None:
        self.result = result
        self.values_by_name = {metric.name: metric.value for metric in result.metrics}

    @property
    def count(self) -> int:
        """The number of pairs, texts, images or users."""
        return self.result.items

    def __getitem__(self, name: str) -> float:
        names = {known.lower(): value for known, value in self.values_by_name.items()}
        if name.lower() not in names:
            raise KeyError(f"no metric {name!r}; {nearest(name, self.values_by_name)}")
        return names[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)

    def compare_to(self, other: Evaluation) -> Comparison:
        """Compare with another model on the same data, by paired bootstrap resampling."""
        if not isinstance(other, Evaluation):
            raise ArgumentError(f"other: expected the evaluation of another model, got {type(other).__name__}")
        return self.result.compare_to(other.result)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, as `heedful evaluate --json` prints it."""
        return {"model": self.result.name, self.result.unit: self.result.items, **self.result.to_dict()}

    def __repr__(self) -> str:
        metrics = ", ".join(f"{metric.name} {metric.format()}" for metric in self.result.metrics)
        return f"<Evaluation of {self.result.name} on {self.result.items:,} {self.result.unit}: {metrics}>"

    def __str__(self) -> str:
        metrics = [(metric.name, metric.format(), metric.signature) for metric in self.result.metrics]
        tables = [format_table(("metric", "value", "signature"), metrics)]
        tables += [format_table(table.columns, table.rows) for table in self.result.tables()]
        return "\n\n".join([f"{self.result.name}: {self.result.items:,} {self.result.unit}", *tables])


class Measurement(Mapping[str, Any]):
    """What `measure` found: the report's numbers by key, and conclusions in sentences; print it for those."""

    def __init__(self, report: Mapping[str, Any], conclusions: Sequence[str]) -> None:
        self.report = report
        self.conclusions = list(conclusions)

    def __getitem__(self, name: str) -> Any:
        if name not in self.report:
            raise KeyError(f"no part {name!r}; {nearest(name, self.report)}")
        return self.report[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.report)

    def __len__(self) -> int:
        return len(self.report)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, as `heedful measure --json` prints it."""
        return dict(self.report)

    def __repr__(self) -> str:
        parts = ", ".join(name for name in self.report if name not in ("model", "items", "unit"))
        report = self.report
        return f"<Measurement of {report['model']} on {report['items']:,} {report['unit']}: {parts}>"

    def __str__(self) -> str:
        head = f"{self.report['model']}: {self.report['items']:,} {self.report['unit']}"
        return "\n".join([head, *(f"- {sentence}" for sentence in self.conclusions)])


def format_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text.

    >>> print(format_table(("metric", "value"), [("BLEU", "40.20")]))
    metric  value
    BLEU    40.20
    """
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    lines = [columns, *rows]
    return "\n".join("  ".join(f"{c:<{w}}" for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)

"""Compare models that exist already, also those of other libraries, on the same data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.analysis.faithfulness import FaithfulnessOptions
from heedful.analysis.measure import load_items
from heedful.analysis.measure import measure as run_measure
from heedful.errors import DataError
from heedful.metrics import evaluate
from heedful.trace.schema import LINK_METHODS

METRICS: Mapping[str, tuple[str, ...]] = {"classify": ("accuracy", "macro-f1")}  # by task
TEXT_METRICS = ("bleu", "chrf")
LIMIT = 500  # examples


class ComparedModel(NamedTuple):
    """A loaded model, its task, and the function that returns its outputs."""

    loaded: Any
    task: str
    predict: Callable[[list[str]], list[str]]


class ModelRow(NamedTuple):
    """One model: `values` are metrics of its outputs and measures of its attention."""

    name: str
    parameters: int
    values: dict[str, float]


def compare_models(
    models: Sequence[ComparedModel], data: Sequence[str], gold: Path | None = None, limit: int = LIMIT, seed: int = 1
) -> list[ModelRow]:
    """Return metrics of the outputs of each model, its alignment error on gold links, and measures of its attention."""
    tasks = {model.task for model in models}
    if len(tasks) > 1:
        raise DataError(f"models of different tasks cannot be compared: {', '.join(sorted(tasks))}")
    return [_measure_model(model, data, gold, limit, seed) for model in models]


def _measure_model(model: ComparedModel, data: Sequence[str], gold: Path | None, limit: int, seed: int) -> ModelRow:
    items, links = load_items(model.loaded, data, "test", gold, 0, limit)
    if not items or not hasattr(items[0], "source"):
        raise DataError(f"{model.loaded.name}: only models that read text can be compared on files")
    references = [item.target for item in items]
    values: dict[str, float] = {}
    if any(references):  # a language model has none
        outputs = model.predict([item.source for item in items])
        metrics = evaluate(METRICS.get(model.task, TEXT_METRICS), outputs, references)
        values = {metric.name: metric.value for metric in metrics}
    report = run_measure(model.loaded, items, FaithfulnessOptions(("uniform",), seed=seed), links)
    if "gold" in report:
        values |= _alignment_error(report["gold"])
    values["entropy"] = report["attention"]["entropy_ratio"]
    if "uniform" in report["faithfulness"]:  # a language model has no single decision
        values["TVD uniform"] = report["faithfulness"]["uniform"]["tvd"]["mean"]
    return ModelRow(model.loaded.name, int(model.loaded.describe().parameters), values)


def _alignment_error(gold: Mapping[str, Any]) -> dict[str, float]:
    """Return the alignment error rate of one link method: the one that was chosen on other pairs, or the plain one."""
    method = gold["chosen"]["method"] if "chosen" in gold else LINK_METHODS[0]
    return {"AER": gold[method]["aer"]} if method in gold else {}


def models_table(rows: Sequence[ModelRow]) -> str:
    """Return a Markdown table of the models.

    >>> print(models_table([ModelRow("a", 1200, {"bleu": 30.5}), ModelRow("b", 900, {"bleu": 28.0})]), end="")
    | model | parameters | bleu |
    |---|---|---|
    | a | 1,200 | 30.50 |
    | b | 900 | 28.00 |
    """
    names = list(dict.fromkeys(name for row in rows for name in row.values))
    lines = [_table_row(["model", "parameters", *names]), "|" + "---|" * (2 + len(names))]
    for row in rows:
        cells = [f"{row.values[name]:.2f}" if name in row.values else "" for name in names]
        lines.append(_table_row([row.name, f"{row.parameters:,}", *cells]))
    return "\n".join(lines) + "\n"


def _table_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"

"""`heedful evaluate`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.console import print_json
from heedful.cli.options import (
    DataFiles,
    Int8,
    JsonReport,
    ModelsOfAnyTask,
    Split,
    Threads,
    parse_decoding,
    warn_if_int8_is_slow,
    with_decoding,
)
from heedful.errors import ModelError

if TYPE_CHECKING:
    from rich.console import Console

    from heedful.tasks.base import EvaluationResult


@with_decoding(without=("n_best",))
def evaluate(
    *,
    model: ModelsOfAnyTask = None,
    data: DataFiles = None,
    split: Split = "test",
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="METRIC",
            help="Metric to compute; may be repeated (default: those of the task).",
        ),
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Second model, compared by paired bootstrap resampling.")
    ] = None,
    gallery: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Captioning only: write an HTML page of the best, typical and worst captions."
        ),
    ] = None,
    int8: Int8 = False,
    threads: Threads = 0,
    json: JsonReport = False,
    **decoding: Any,
) -> None:
    """Evaluate a model. Prints metrics with signatures, and breakdowns such as quality by source length."""
    options, max_seconds = parse_decoding(decoding), decoding["max_seconds"]
    from heedful.cli.console import make_console
    from heedful.decoding import StopCondition
    from heedful.tasks.base import EvaluationRequest, no_log
    from heedful.tasks.bundled import find_models
    from heedful.tasks.model_card import read_card
    from heedful.tasks.registry import get_task

    folders = find_models(model or [], "translate")
    task = get_task(read_card(folders[0])["task"])
    others = find_models([against], "") if against is not None else []
    for other in others:  # before any work is done
        if get_task(read_card(other)["task"]) is not task:
            raise ModelError(f"--against: {other} was trained for another task than {folders[0]}")
    warn_if_int8_is_slow(int8)
    stop = StopCondition(max_seconds)
    request = EvaluationRequest(data or [], split, metric or [], options, int8, threads, gallery, stop, _log)
    result = task.evaluate(folders, request)
    report: dict[str, Any] = {"model": result.name, result.unit: result.items, **result.to_dict()}
    if others:
        other_result = task.evaluate(others, request._replace(gallery=None, log=no_log))
        comparison = result.compare_to(other_result).to_dict()
        report["against"] = {"model": other_result.name, **other_result.to_dict(), "comparison": comparison}
    if json:
        print_json(report)
        return
    console = make_console()
    console.print(f"{result.name}: {result.items:,} {result.unit}")
    _print_tables(console, result)
    if others:
        console.print(_comparison_sentence(report["against"]))


def _log(line: str) -> None:
    print(line, file=sys.stderr)


def _comparison_sentence(against: dict[str, Any]) -> str:
    comparison = against["comparison"]
    first, second = comparison["first"], comparison["second"]
    return (
        f"against {against['model']}: {first['name']} {first['value']:.2f} and {second['value']:.2f},"
        f" difference {comparison['difference']:+.2f}"
        f" (95 % interval {comparison['low']:+.2f} to {comparison['high']:+.2f}), p = {comparison['p']:.3f}"
    )


def _print_tables(console: Console, result: EvaluationResult) -> None:
    from rich.table import Table

    table = Table("metric", "value", "signature", box=None, pad_edge=False)
    for metric in result.metrics:
        table.add_row(metric.name, metric.format(), metric.signature)
    console.print(table)
    for columns, rows in result.tables():
        table = Table(*columns, box=None, pad_edge=False)
        for row in rows:
            table.add_row(*row)
        console.print(table)

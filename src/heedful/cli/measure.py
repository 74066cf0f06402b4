"""`heedful measure`: conclusions in sentences, and the numbers behind them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.console import print_json
from heedful.cli.options import DataFiles, JsonReport, Split
from heedful.errors import DataError, nearest

if TYPE_CHECKING:
    from rich.console import Console


def measure(
    *,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--model",
            metavar="MODEL",
            help="Model folder, or the name of a bundled model (default: the bundled translation model).",
            show_default=False,
        ),
    ] = None,
    data: DataFiles = None,
    split: Split = "test",
    gold: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Gold word alignment, one sentence pair per line (3-4: sure link, 3p4: possible link).",
        ),
    ] = None,
    gold_base: Annotated[
        int, typer.Option(metavar="N", min=0, max=1, help="Word numbers in the gold file start at 0 or 1.")
    ] = 0,
    links: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Score this word alignment against --gold instead of a model.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=0, help="Use only the first n examples; 0: all.")] = 500,
    test: Annotated[
        list[str] | None,
        typer.Option(
            "--test",
            metavar="TEST",
            help="Faithfulness test: correlation, permutation, uniform, erasure, input-erasure, counterfactual (slow),"
            " all or none; may be repeated (default: all but counterfactual).",
        ),
    ] = None,
    steps: Annotated[
        int, typer.Option(metavar="N", min=1, help="Decoding steps tested per output, sampled at random.")
    ] = 4,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed.")] = 1,
    json: JsonReport = False,
) -> None:
    """Measure attention: alignment error and faithfulness. Prints conclusions, then the numbers."""
    if links is not None:
        if gold is None:
            raise DataError("--links: needs --gold, the file to score against")
        _score_links(links, gold, gold_base, json)
        return
    from heedful.analysis.faithfulness import DEFAULT_TESTS, TESTS, FaithfulnessOptions
    from heedful.analysis.measure import load_items
    from heedful.analysis.measure import measure as run_measure
    from heedful.cli.console import make_console
    from heedful.tasks.open_model import open_model

    names = test or []
    unknown = [
        f'--test "{name}": no such test; {nearest(name, (*TESTS, "all", "none"))}'
        for name in names
        if name not in (*TESTS, "all", "none")
    ]
    if unknown:
        raise DataError("\n".join(unknown))
    if model is not None and len(model) > 1:
        raise DataError(f"`measure` takes one model, got {len(model)}")
    loaded = open_model(model[0] if model else None, "translate")
    examples, gold_links = load_items(loaded, data or [], split, gold, gold_base, limit)
    tests = TESTS if "all" in names else () if "none" in names else names or DEFAULT_TESTS
    report = run_measure(loaded, examples, FaithfulnessOptions(tests, steps, seed=seed, log=_log), gold_links)
    if json:
        print_json(report)
    else:
        print_report(make_console(), report)


def _log(text: str) -> None:
    if sys.stderr.isatty():
        print(f"measuring: {text}", file=sys.stderr)


def _score_links(links: Path, gold: Path, base: int, as_json: bool) -> None:
    from heedful.metrics.alignment import score_alignment
    from heedful.trace.schema import read_links

    score = score_alignment([line.possible for line in read_links(links)], read_links(gold, base))
    if as_json:
        print_json(score._asdict())
        return
    metrics = f"AER {score.aer:.2f}  precision {score.precision:.2f}  recall {score.recall:.2f}"
    print(f"{metrics}  ({score.links:,} links)")


def print_report(console: Console, report: Mapping[str, Any]) -> None:
    """Print the conclusions, then the numbers behind them."""
    from rich.table import Table

    from heedful.analysis.measure_report import (
        alignment_rows,
        conclusions,
        definitions,
        faithfulness_rows,
        gold_rows,
        label,
    )

    console.print(f"{report['model']}: {report['items']:,} {report['unit']}")
    for sentence in conclusions(report):
        console.print(f"- {sentence}")
    table = Table("attention", "", box=None, pad_edge=False)
    for name, value in report["attention"].items():
        table.add_row(label(name), f"{value:.1%}")
    console.print(table)
    if "gold" in report:
        table = Table("gold", "", box=None, pad_edge=False)
        for name, text in gold_rows(report["gold"]):
            table.add_row(name, text)
        console.print(table)
        table = Table("alignment", "AER", "precision", "recall", box=None, pad_edge=False)
        for cells in alignment_rows(report["gold"]):
            table.add_row(*cells)
        if table.row_count:
            console.print(table)
    if "faithfulness" in report:
        tests = report["faithfulness"]
        count = f" ({tests['decisions']:,} decisions)" if tests["decisions"] else ""
        table = Table(f"faithfulness{count}", "", "for comparison", box=None, pad_edge=False)
        for row in faithfulness_rows(tests):
            table.add_row(*row)
        console.print(table)
    where = definitions(report)
    if where:
        console.print(where, style="dim")

"""`heedful bench`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.console import print_json
from heedful.cli.options import JsonReport, ModelsOfAnyTask, Threads

if TYPE_CHECKING:
    from rich.table import Table

    from heedful.analysis.bench import BenchResult


def bench(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="Text file, one input per line (default: the model's test data, or built-in lines)."
        ),
    ] = None,
    *,
    model: ModelsOfAnyTask = None,
    lines: Annotated[int, typer.Option(metavar="N", min=1, max=100_000, help="Use at most this many lines.")] = 500,
    rounds: Annotated[
        int, typer.Option(metavar="N", min=1, max=1_000, help="Number of measurements per configuration.")
    ] = 3,
    threads: Threads = 0,
    json: JsonReport = False,
) -> None:
    """Measure generation speed. Compares greedy and beam search, batches and single lines, float32 and int8."""
    from heedful.analysis.bench import bench as run_bench
    from heedful.analysis.bench import load_lines
    from heedful.cli.console import make_console
    from heedful.parallel import available_cpus
    from heedful.tasks.bundled import find_models

    folders = find_models(model or [], "translate")
    threads = threads or available_cpus()
    log = make_console(stderr=True).print
    texts = load_lines(folders[0], file, lines, log)
    rows = run_bench(folders, texts, rounds, threads, log)
    if json:
        report = {"threads": threads, "rounds": rounds, "modes": [row.to_dict() for row in rows]}
        print_json(report)
        return
    console = make_console()
    console.print(f"{len(texts):,} lines, {threads} threads, {rounds} rounds; configurations alternate:")
    console.print(_table(rows))


def _table(rows: Sequence[BenchResult]) -> Table:
    from rich.table import Table

    table = Table("mode", "numbers", box=None, pad_edge=False)
    for column in ("lines/s", "ms/line", "tokens/s", "speedup", "same output"):
        table.add_column(column, justify="right")
    float_rates = {row.mode: row.lines_per_second for row in rows if not row.int8}
    for row in rows:
        table.add_row(
            row.mode,
            "int8" if row.int8 else "float32",
            f"{row.lines_per_second:.1f} ± {row.sd:.1f}",
            f"{1000 / row.lines_per_second:.2f}",
            f"{row.lines_per_second * row.tokens_per_line:,.0f}",
            f"{row.lines_per_second / float_rates[row.mode]:.2f}x" if row.int8 else "",
            "" if row.same_outputs is None else f"{row.same_outputs}/{row.lines}",
        )
    return table

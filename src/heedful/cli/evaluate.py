"""`heedful evaluate` on the terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from heedful.errors import ModelError
from heedful.evaluation import Comparison
from heedful.tasks.bundled import find
from heedful.tasks.folder import read_card
from heedful.tasks.kind import Evaluated, Question, kind_of


def run(models: Sequence[Path], asked: Question, other: Path | None, as_json: bool) -> None:
    models = find(models, "translate")
    kind = kind_of(read_card(models[0])["task"])
    rivals = find([other], "") if other is not None else []
    for rival in rivals:  # before any work is done
        if kind_of(read_card(rival)["task"]) is not kind:
            raise ModelError(f"{rival} was trained for another task than {models[0]}")
    found = kind.evaluate(models, asked)
    theirs = kind.evaluate(rivals, asked._replace(gallery=None)) if rivals else None
    report: dict[str, Any] = {"model": found.name, found.unit: found.items, **found.plain()}
    if theirs is not None:
        comparison = found.against(theirs)
        report["against"] = {"model": theirs.name, **theirs.plain(), "comparison": _plain(comparison)}
    if as_json:
        print(json.dumps(report, ensure_ascii=False))
        return
    console = Console(highlight=False)
    console.print(f"{found.name}: {found.items:,} {found.unit}")
    _tables(console, found)
    if theirs is not None:
        c = report["against"]["comparison"]
        mine, its = c["first"], c["second"]
        console.print(
            f"against {theirs.name}: {mine['name']} {mine['value']:.2f} and {its['value']:.2f},"
            f" difference {c['difference']:+.2f} (95 % of resamples {c['low']:+.2f} to {c['high']:+.2f}),"
            f" p = {c['p']:.3f}"
        )


def _plain(comparison: Comparison) -> dict[str, Any]:
    return {
        **comparison._asdict(),
        "first": comparison.first._asdict(),
        "second": comparison.second._asdict(),
    }


def _tables(console: Console, found: Evaluated) -> None:
    table = Table("metric", "value", "signature", box=None, pad_edge=False)
    for metric in found.metrics:
        table.add_row(metric.name, f"{metric.value:.2f}", metric.signature)
    console.print(table)
    for heads, rows in found.tables():
        table = Table(*heads, box=None, pad_edge=False)
        for row in rows:
            table.add_row(*row)
        console.print(table)

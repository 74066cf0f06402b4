"""`heedful bench` on the terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from heedful.studies.bench import Measured, bench, sources
from heedful.tasks.bundled import find
from heedful.tasks.use import processors


def run(
    models: Sequence[Path], file: Path | None, lines: int, rounds: int, threads: int, as_json: bool
) -> None:
    models = find(models, "translate")
    threads = threads or processors()
    texts = sources(models[0], file, lines)
    aside = Console(stderr=True, highlight=False)
    found = bench(models, texts, rounds, threads, aside.print)
    if as_json:
        record = {"threads": threads, "rounds": rounds, "ways": [row.plain() for row in found]}
        print(json.dumps(record, ensure_ascii=False))
        return
    console = Console(highlight=False)
    console.print(f"{len(texts):,} lines, {threads} thread(s), {rounds} rounds, the ways in turns:")
    console.print(_table(found))


def _table(found: Sequence[Measured]) -> Table:
    table = Table("way", "in", box=None, pad_edge=False)
    for head in ("lines/s", "ms a line", "tokens/s", "faster", "same"):
        table.add_column(head, justify="right")
    floats = {row.way: row for row in found if not row.int8}
    for row in found:
        times = row.rate / floats[row.way].rate
        table.add_row(
            row.way,
            "bytes" if row.int8 else "floats",
            f"{row.rate:.1f} ± {row.spread:.1f}",
            f"{1000 / row.rate:.2f}",
            f"{row.rate * row.tokens:,.0f}",
            f"{times:.2f}x" if row.int8 else "",
            "" if row.same is None else f"{row.same}/{row.lines}",
        )
    return table

"""`heedful evaluate` on the terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from heedful.evaluation import check_names
from heedful.tasks.bundled import find
from heedful.tasks.evaluate import Evaluated, against, measure, pairs_of
from heedful.tasks.use import open_models


def run(
    models: Sequence[Path],
    data: Sequence[str],
    split: str,
    metrics: Sequence[str],
    asked: Mapping[str, Any],
    other: Path | None,
    as_json: bool,
    int8: bool = False,
    threads: int = 0,
) -> None:
    check_names(metrics)
    models = find(models, "translate")
    ready = open_models(models, int8, threads)
    rival = open_models(find([other], ""), int8, threads) if other is not None else None
    how = ready.decoding.model_copy(update=dict(asked))
    pairs = pairs_of(models[0], data, split)
    found = measure(ready, pairs, how, metrics)
    report: dict[str, Any] = {"model": ready.name, "pairs": len(pairs), **found.plain()}
    if rival is not None:
        theirs = measure(rival, pairs, how, metrics)
        main = "bleu" if ready.task in ("translate", "reply") else "exact"
        comparison = against(found.outputs, theirs.outputs, pairs, main)
        report["against"] = {"model": rival.name, **theirs.plain(), "comparison": comparison._asdict()}
        report["against"]["comparison"]["first"] = comparison.first._asdict()
        report["against"]["comparison"]["second"] = comparison.second._asdict()
    if as_json:
        print(json.dumps(report, ensure_ascii=False))
        return
    console = Console(highlight=False)
    console.print(f"{ready.name}: {len(pairs):,} pairs")
    _tables(console, found)
    if rival is not None:
        c = report["against"]["comparison"]
        mine, its = c["first"], c["second"]
        console.print(
            f"against {rival.name}: {mine['name']} {mine['value']:.2f} and {its['value']:.2f},"
            f" difference {c['difference']:+.2f} (95 % of resamples {c['low']:+.2f} to {c['high']:+.2f}),"
            f" p = {c['p']:.3f}"
        )


def _tables(console: Console, found: Evaluated) -> None:
    table = Table("metric", "value", "signature", box=None, pad_edge=False)
    for metric in found.metrics:
        table.add_row(metric.name, f"{metric.value:.2f}", metric.signature)
    console.print(table)
    lengths = Table("source words", "sentences", found.lengths[0].metric.name, box=None, pad_edge=False)
    for bucket in found.lengths:
        high = "" if bucket.high is None else str(bucket.high)
        lengths.add_row(f"{bucket.low}-{high}", str(bucket.items), f"{bucket.metric.value:.2f}")
    console.print(lengths)
    places = Table("part of the reference", "words", "found in the output", box=None, pad_edge=False)
    for place in found.places:
        places.add_row(f"{place.low:.0%}-{place.high:.0%}", str(place.words), f"{place.recall:.1f} %")
    console.print(places)

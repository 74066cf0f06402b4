"""The results of `heedful compare` as a Markdown table, JSON and a bar chart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from heedful.viz.bars import draw_bars

MAX_STEPS_RATIO = 1.5  # of variants whose quality can be compared


class ComparisonRow(NamedTuple):
    """One variant; `metrics` has the mean and the standard deviation over seeds."""

    name: str
    parameters: int
    metrics: dict[str, tuple[float, float | None]]  # one seed has no standard deviation
    steps: float
    seconds_per_step: float
    peak_memory_mb: float
    p_value: float | None  # paired bootstrap of the first seed against the first variant's
    seconds_per_decoding_step: float | None = None  # one token of 32 outputs; None: the model does not generate


def markdown(rows: Sequence[ComparisonRow]) -> str:
    """Return the table of `compare.md`."""
    names = list(rows[0].metrics)
    generates = any(row.seconds_per_decoding_step is not None for row in rows)
    heads = ["variant", "parameters", *names, "p", "steps", "ms/step"]
    heads += ["ms/decoding step", "MB"] if generates else ["MB"]
    lines = [" | ".join(["", *heads, ""]).strip(), "|" + "---|" * len(heads)]
    for row in rows:
        values = [row.metrics.get(name) for name in names]
        cells = ["" if value is None else _format_value(*value) for value in values]
        p_value = "" if row.p_value is None else f"{row.p_value:.3f}"
        cost = [f"{row.steps:.0f}", f"{1000 * row.seconds_per_step:.0f}"]
        if generates:
            seconds = row.seconds_per_decoding_step
            cost.append("" if seconds is None else f"{1000 * seconds:.2f}")
        cost.append(f"{row.peak_memory_mb:.0f}")
        lines.append(" | ".join(["", row.name, f"{row.parameters:,}", *cells, p_value, *cost, ""]).strip())
    return "\n".join(lines) + "\n"


def count_noun(count: int, noun: str) -> str:
    """Return a number and its noun.

    >>> count_noun(1, "seed"), count_noun(3, "seed")
    ('1 seed', '3 seeds')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def steps_warning(rows: Sequence[ComparisonRow]) -> str:
    """Return a warning if variants were trained for very different numbers of steps, or an empty text."""
    trained = [row for row in rows if row.steps > 0]  # counts are not trained
    if not trained:
        return ""
    fewest, most = (choose(trained, key=lambda row: row.steps) for choose in (min, max))
    if most.steps <= MAX_STEPS_RATIO * fewest.steps:
        return ""
    return (
        f"{most.name} was trained for {most.steps:,.0f} steps, {fewest.name} for {fewest.steps:,.0f}"
        f" ({most.steps / fewest.steps:.1f} times as many). The p-values compare models after equal time, not after"
        f" equal training; for that, repeat with --budget {most.steps:.0f}steps."
    )


def _format_value(mean: float, sd: float | None) -> str:
    return f"{mean:.2f}" if sd is None else f"{mean:.2f} ± {sd:.2f}"


def write_report(
    rows: Sequence[ComparisonRow], out: Path, recipe: Path, budget: str, seeds: int, parallel_jobs: int
) -> None:
    """Write `compare.md`, `compare.json` and `compare.png` into `out`."""
    parallel = f", {parallel_jobs} at the same time" if parallel_jobs > 1 else ""
    caption = (
        f"`{recipe.name}`, {count_noun(seeds, 'seed')}, {budget} of training each{parallel}; mean ± standard"
        " deviation over seeds; p: paired bootstrap of the first seed against the first row; a decoding step"
        " generates one token of 32 outputs, greedily, with the models measured alternately.\n\n"
    )
    warning = steps_warning(rows)
    caption += f"**Warning:** {warning}\n\n" if warning else ""
    (out / "compare.md").write_text(caption + markdown(rows), encoding="utf-8")
    (out / "compare.json").write_text(json.dumps([row._asdict() for row in rows], indent=1) + "\n", encoding="utf-8")
    metric = next(iter(rows[0].metrics))
    draw_bars([(row.name, *row.metrics[metric]) for row in rows], metric, out / "compare.png")

"""A bar chart of several variants side by side, with error bars."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.viz.canvas import subplots
from heedful.viz.figure import save_figure
from heedful.viz.limits import figure_labels, figure_size
from heedful.viz.palette import BAR

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_bars(rows: Sequence[tuple[str, float, float | None]], label: str, path: Path) -> None:
    """Draw (name, mean, standard deviation) rows, with the mean next to each bar; the file is written atomically."""
    save_figure(lambda: _bars_figure(rows, label), [*(name for name, _, _ in rows), label], path)


def _bars_figure(rows: Sequence[tuple[str, float, float | None]], label: str) -> Figure:
    figure, axes = subplots(figsize=figure_size(7.5, 0.9 + 0.42 * len(rows)))
    names, means, deviations = zip(*rows, strict=True)
    errors = None if None in deviations else deviations
    rows_y = range(len(rows))
    axes.barh(rows_y, means, xerr=errors, color=BAR, ecolor="#222222", capsize=3)
    for y, mean in zip(rows_y, means, strict=True):
        axes.annotate(f"{mean:.1f}", (mean, y), (5, 7), textcoords="offset points", fontsize=8)
    axes.set_yticks(rows_y, figure_labels(names))
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    return figure

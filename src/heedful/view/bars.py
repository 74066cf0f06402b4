"""Bars with spread: one figure of several variants side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

from heedful.errors import DataError
from heedful.whole import whole


def draw_bars(rows: Sequence[tuple[str, float, float | None]], label: str, path: Path) -> None:
    """Draw (name, mean, spread) rows; the number stands beside each bar."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.5, 0.9 + 0.42 * len(rows)))
    names, means, found = zip(*rows, strict=True)
    spreads = None if None in found else found
    places = range(len(rows))
    axes.barh(places, means, xerr=spreads, color="#4878a8", ecolor="#222222", capsize=3)
    for place, mean in zip(places, means, strict=True):
        axes.annotate(f"{mean:.1f}", (mean, place), (5, 7), textcoords="offset points", fontsize=8)
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    with whole(path, DataError) as draft:
        figure.savefig(draft, dpi=150, bbox_inches="tight")
    pyplot.close(figure)

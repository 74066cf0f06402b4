"""Draw the speed ratios: one bar per row and peer, its range, and a mark at the target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rows import BY_NAME, NAMES
from table import Record, measured_pairs, speed_ratio

COLORS = {
    "joey": "#c77d2e",
    "onmt": "#2f6f9f",
    "ct2": "#7a4f9a",
    "ct2f": "#c9b3e6",
    "plain": "#5b8c5a",
    "plain8": "#5b8c5a",
}


def draw(records: Sequence[Record], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    bars = [
        (BY_NAME[record["row"]], (variant, peer), target, speed_ratio(record, peer, variant))
        for record in records
        for variant, peer, target in measured_pairs(record)
    ]
    figure, axes = plt.subplots(figsize=(8.5, 0.9 + 0.32 * len(bars)), layout="constrained")
    for y, (_, (variant, peer), target, ratio) in enumerate(bars):
        axes.barh(y, ratio.median, color=COLORS[peer], height=0.62, alpha=1.0 if variant == "int8" else 0.7)
        axes.plot([ratio.low, ratio.high], [y, y], color="black", linewidth=1.2)
        if target is not None:
            axes.plot([target, target], [y - 0.4, y + 0.4], color="#c0392b", linewidth=2.2)
        near = target is not None and ratio.high <= target < 1.5 * ratio.high  # the number goes beyond the mark
        position = (target if near else ratio.high, y)
        axes.annotate(f"{ratio.median:.2f}", position, (5, 0), textcoords="offset points", va="center", fontsize=8)
    names = [
        f"{row.title}{', int8' if variant == 'int8' else ''}, over {NAMES[peer]}" for row, (variant, peer), _, _ in bars
    ]
    axes.set_yticks(range(len(bars)), names, fontsize=8)
    axes.set_ylim(len(bars) - 0.3, -0.7)  # the first on top
    axes.set_xscale("log")
    ends = [end for _, _, target, ratio in bars for end in (ratio.low, ratio.high, target or 1.0)]
    axes.set_xlim(min(0.5, min(ends) / 1.3), max(ends) * 2.2)
    axes.xaxis.set_major_locator(mpl.ticker.FixedLocator([0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.xaxis.set_minor_locator(mpl.ticker.NullLocator())
    axes.axvline(1.0, color="grey", linewidth=0.8)
    figure.supxlabel("speed relative to the peer (line: range over rounds; red: target)", fontsize=10)
    figure.savefig(path, dpi=130)
    plt.close(figure)

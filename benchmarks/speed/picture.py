"""The ratios as a picture: a bar for each row and peer, its spread, and a mark at what we want."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rows import BY_NAME, NAMES
from table import Record, ratio

COLOURS = {"joey": "#c77d2e", "onmt": "#2f6f9f", "ct2": "#7a4f9a", "plain": "#5b8c5a", "plain8": "#5b8c5a"}


def draw(records: Sequence[Record], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    bars = [
        (BY_NAME[record["row"]], (ours, peer), wanted, ratio(record, peer, ours))
        for record in records
        for ours, peer, wanted in BY_NAME[record["row"]].pairs
    ]
    figure, axes = plt.subplots(figsize=(8.5, 0.9 + 0.32 * len(bars)), layout="constrained")
    for place, (_, (ours, peer), wanted, found) in enumerate(bars):
        axes.barh(place, found.middle, color=COLOURS[peer], height=0.62, alpha=1.0 if ours == "int8" else 0.7)
        axes.plot([found.least, found.most], [place, place], color="black", linewidth=1.2)
        if wanted is not None:
            axes.plot([wanted, wanted], [place - 0.4, place + 0.4], color="#c0392b", linewidth=2.2)
        near = wanted is not None and found.most <= wanted < 1.5 * found.most  # the number goes past the mark
        side = (wanted if near else found.most, place)
        axes.annotate(
            f"{found.middle:.2f}", side, (5, 0), textcoords="offset points", va="center", fontsize=8
        )
    names = [
        f"{row.title}{', int8' if ours == 'int8' else ''}, over {NAMES[peer]}"
        for row, (ours, peer), _, _ in bars
    ]
    axes.set_yticks(range(len(bars)), names, fontsize=8)
    axes.set_ylim(len(bars) - 0.3, -0.7)  # the first on top
    axes.set_xscale("log")
    ends = [end for _, _, wanted, found in bars for end in (found.least, found.most, wanted or 1.0)]
    axes.set_xlim(min(0.5, min(ends) / 1.3), max(ends) * 2.2)
    axes.xaxis.set_major_locator(mpl.ticker.FixedLocator([0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.xaxis.set_minor_locator(mpl.ticker.NullLocator())
    axes.axvline(1.0, color="grey", linewidth=0.8)
    figure.supxlabel("how many times as fast we are (line: least to most; red: wanted)", fontsize=10)
    figure.savefig(path, dpi=130)
    plt.close(figure)

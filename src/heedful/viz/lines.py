"""The lines view: input words above, output words below, and a line for each weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heedful.trace.schema import Trace
from heedful.viz.alignment import build_table
from heedful.viz.base import View, ViewOptions
from heedful.viz.canvas import size_of, subplots
from heedful.viz.limits import MAX_MARKS, check_count, figure_labels, figure_size
from heedful.viz.page import options_link, page_html
from heedful.viz.palette import GOLD, NOTE, STRONG

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MIN_WEIGHT = 0.01  # smaller weights are not drawn; their sum is written next to the lines
MAX_LINE_WEIGHT = 10.0  # larger weights, which need not sum to 1, are drawn alike
WORD_SPACING, LETTER_WIDTH = 0.75, 0.1  # inches, of the longer side
NOTE_WIDTH = 1.15  # inches for the notes on the left


def lines_figure(trace: Trace, options: ViewOptions) -> Figure:
    """Draw lines whose width and opacity are the weight; gold links have a color of their own."""
    table = build_table(trace, options)
    figure, axes = subplots(figsize=figure_size(2.4 + WORD_SPACING * max(len(table.rows), len(table.columns)), 3.2))
    figure.subplots_adjust(left=0.02, right=0.98)
    draw_lines(axes, trace, options)
    return figure


def draw_lines(axes: Axes, trace: Trace, options: ViewOptions) -> Axes:
    """Draw the lines and their words into axes."""
    table = build_table(trace, options)
    n_positions = max(len(table.rows), len(table.columns))
    check_count(int((table.weights >= MIN_WEIGHT).sum()), MAX_MARKS, "lines")
    above, below = _spread(len(table.columns), n_positions), _spread(len(table.rows), n_positions)
    gold = set(table.gold)
    for (row, column), weight in np.ndenumerate(table.weights):
        if weight >= MIN_WEIGHT:
            axes.plot(
                [above[column], below[row]],
                [1, 0],
                color=GOLD if (row, column) in gold else STRONG,
                alpha=min(1.0, float(weight)),
                lw=2.2 * min(weight, MAX_LINE_WEIGHT) + 0.3,
            )
    spacing = min(WORD_SPACING, (size_of(axes)[0] - NOTE_WIDTH) / n_positions)
    _write_words(axes, above, figure_labels(table.columns), 1.05, table.column_noun.plural, spacing)
    _write_words(axes, below, figure_labels(table.rows), -0.05, table.row_noun.plural, spacing)
    hidden = table.weights[table.weights < MIN_WEIGHT].sum() / max(1, len(table.rows))
    _write_note(axes, 0.5, f"lines under {MIN_WEIGHT:.0%}\nhide {hidden:.1%}\nof the weight")
    margin = NOTE_WIDTH * n_positions / max(NOTE_WIDTH, size_of(axes)[0] - NOTE_WIDTH)
    axes.set(xlim=(-0.6 - margin, n_positions - 0.5), ylim=(-0.35, 1.35))
    axes.axis("off")
    return axes


def _write_words(axes: Axes, positions: np.ndarray, words: list[str], y: float, name: str, spacing: float) -> None:
    """Write the words of a side, rotated where they would overlap, and before them what they are."""
    gap = spacing * (float(positions[1] - positions[0]) if len(positions) > 1 else len(words[0]))
    rotated = max(map(len, words), default=0) * LETTER_WIDTH > gap
    above = y > 0
    for position, word in zip(positions, words, strict=True):
        if rotated:
            axes.text(
                position, y, word, rotation=40, rotation_mode="anchor",
                ha="left" if above else "right", va="bottom" if above else "top",
            )  # fmt: skip
        else:
            axes.text(position, y, word, ha="center", va="bottom" if above else "top")
    _write_note(axes, 1.0 if above else 0.0, name)


def _write_note(axes: Axes, y: float, text: str) -> None:
    axes.text(-0.6, y, text, color=NOTE, fontsize=9, ha="right", va="center")


def _spread(count: int, n_positions: int) -> np.ndarray:
    return np.linspace(0, n_positions - 1, count) if count > 1 else np.array([(n_positions - 1) / 2])


VIEW = View(
    "a line per weight",
    figure=lines_figure,
    axes=draw_lines,
    page=lambda trace, options: page_html(trace, options_link("alignment", trace, options, figure="lines")),
)

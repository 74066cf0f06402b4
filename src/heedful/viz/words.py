"""The words view: a classified text, its words shaded by their weights, and the most likely labels.

Shades are relative to the largest weight, so that long texts are readable too; numbers are the weights.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from heedful.terminal_text import one_line
from heedful.trace.schema import Trace
from heedful.viz.base import TextStyle, View, ViewOptions
from heedful.viz.canvas import subplots
from heedful.viz.limits import figure_label, figure_labels, figure_size
from heedful.viz.page import options_link, page_html
from heedful.viz.palette import GOLD, INK, NOTE, PALE
from heedful.viz.shades import number_text, shade_text
from heedful.viz.weighted_text import WeightedText, weigh_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEGEND = "shade: relative to the largest weight; numbers: weight in hundredths"
GOLD_LEGEND = "; *: gold word"
MIN_WORD_WIDTH, WORD_GAP = 5, 2  # columns of a terminal
LINE_LETTERS = 92  # of a figure
FIGURE_WIDTH, LINE_HEIGHT = 9.0, 0.62  # inches


def words_text(trace: Trace, options: ViewOptions | None = None, style: TextStyle | None = None) -> Text:
    """Return the text for a terminal: below each word its shade and its weight."""
    options, style = options or ViewOptions(), style or TextStyle()
    weighted = weigh_words(trace, options)
    text = Text()
    text.append(one_line(weighted.label), style="bold")
    text.append(f"   ({'  '.join(f'{one_line(name)} {p:.2f}' for name, p in weighted.labels)})\n\n")
    words = [one_line(word) + "*" * (index in weighted.gold) for index, word in enumerate(weighted.words)]
    widths = [max(MIN_WORD_WIDTH, cell_len(word)) for word in words]
    for line in wrap_words(widths, style.width):
        above, below = Text(), Text()
        for index in line:
            share, weight = weighted.shades[index], weighted.weights[index]
            above.append(words[index], style="reverse" if share >= 0.5 else "")
            above.append(" " * (widths[index] - cell_len(words[index]) + WORD_GAP))
            cell = shade_text(share, style.unicode) + number_text(weight, style.unicode)
            below.append(cell.ljust(widths[index] + WORD_GAP))
        text.append(above).append("\n").append(below).append("\n")
    legend = LEGEND + (GOLD_LEGEND if weighted.gold else "")
    text.append(textwrap.fill(legend, max(style.width, 20)) + "\n", style="dim")
    return text


def wrap_words(widths: list[int], width: int, gap: int = WORD_GAP) -> list[list[int]]:
    """Return the indices of the words of each line.

    >>> wrap_words([5, 5, 5], 13)
    [[0, 1], [2]]
    """
    lines: list[list[int]] = [[]]
    used = 0
    for index, word_width in enumerate(widths):
        if lines[-1] and used + word_width > width:
            lines.append([])
            used = 0
        lines[-1].append(index)
        used += word_width + gap
    return lines


def words_figure(trace: Trace, options: ViewOptions) -> Figure:
    """Draw the words in reading order, and bars for the labels below."""
    weighted = weigh_words(trace, options)
    weighted = weighted._replace(words=figure_labels(weighted.words))
    lines = wrap_words([cell_len(word) for word in weighted.words], LINE_LETTERS)
    bars_height = 0.4 + 0.26 * len(weighted.labels)
    text_height = 0.5 + LINE_HEIGHT * len(lines)
    figure, (above, below) = subplots(
        2,
        1,
        figsize=figure_size(FIGURE_WIDTH, text_height + bars_height),
        height_ratios=[text_height, bars_height],
        layout="constrained",
    )
    above.set_axis_off()
    above.set_title(f"{figure_label(weighted.label)}   ({weighted.labels[0][1]:.2f})", loc="left")
    if weighted.gold:
        above.set_title("ringed: gold words", loc="right", fontsize=8, color=NOTE)
    _draw_words(above, weighted, lines, text_height, options.cmap)
    names, probabilities = zip(*weighted.labels, strict=True)
    colors = ["#08519c" if name == weighted.label else PALE for name in names]
    below.barh(range(len(names)), probabilities, color=colors)
    below.set_yticks(range(len(names)), figure_labels(names), fontsize=9)
    below.invert_yaxis()
    below.set_xlim(0, 1)
    below.set_xlabel("probability", fontsize=9)
    below.tick_params(length=0, labelsize=9)
    below.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_words(axes: Axes, weighted: WeightedText, lines: list[list[int]], height: float, cmap: str) -> None:
    """Draw words in their boxes; each starts where the measured box before it ends."""
    from matplotlib import colormaps

    figure = axes.figure
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    axes.set(xlim=(0, FIGURE_WIDTH), ylim=(height, 0))
    for row, line in enumerate(lines):
        x, y = 0.1, 0.35 + LINE_HEIGHT * row
        for index in line:
            share = weighted.shades[index]
            box = {
                "facecolor": colormaps[cmap](0.75 * share),
                "edgecolor": GOLD if index in weighted.gold else "none",
                "boxstyle": "round,pad=0.2",
            }
            color = "white" if share > 0.8 else INK
            word = axes.text(x, y, weighted.words[index], color=color, bbox=box, va="center")
            width = word.get_window_extent(renderer).width / figure.dpi
            number = f"{weighted.weights[index]:.2f}" if weighted.weights[index] >= 0.005 else "·"
            axes.text(x + width / 2, y + 0.26, number, fontsize=7, color=NOTE, ha="center", va="center")
            x += width + 0.16


def _suits(trace: Trace, site: str | None) -> bool:
    """Return whether a site is the attention pooling of a classifier."""
    record = trace.find_site(site)
    return record is not None and record.kind == "pool" and record.query_side == "target"


VIEW = View(
    "a classified text, its words shaded by weight",
    figure=words_figure,
    text=words_text,
    page=lambda trace, options: page_html(trace, options_link("walk", trace, options)),
    suits=_suits,
)

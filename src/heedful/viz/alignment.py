"""The alignment view: attention weights as a matrix, output words down and input words across."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from heedful.errors import TraceError
from heedful.terminal_text import one_line
from heedful.trace.schema import AttentionTable, Trace, fold
from heedful.trace.schema.table import group_tokens
from heedful.viz.base import TextStyle, View, ViewOptions
from heedful.viz.canvas import size_of, subplots
from heedful.viz.limits import MAX_TERMINAL_CELLS, check_count, figure_labels, figure_size, piece_labels
from heedful.viz.page import options_link, page_html
from heedful.viz.palette import GOLD, NOTE
from heedful.viz.shades import number_text, shade_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

MAX_NUMBERED_CELLS = 400  # a larger matrix has colors only
MAX_COLUMNS = 40  # a longer source continues in the next panel
DARK = 0.5  # luminance of a cell below which its number is white
MIN_NUMBER = 0.005  # smaller weights have no number
CELL, BAR_WIDTH = (0.62, 0.46), 0.2  # width and height of a cell, and the width of the color bar, in inches
MIN_CELL = (0.24, 0.14)  # width and height in inches of a cell that has room for its number
LABEL_LENGTH, LETTER_WIDTH = 0.7, 0.09  # inches; longer labels make a figure larger
SLANT = math.radians(40)  # of the labels of columns
LABEL_SPACE = 0.17  # inches between two labels, so that they do not overlap
CELL_WIDTH, MAX_LABEL_WIDTH = 7, 18  # columns of a terminal


def build_table(trace: Trace, options: ViewOptions, *, specials: bool = False) -> AttentionTable:
    """Return the labeled weights to draw; raise if there are none.

    `specials` is whether start and end tokens are shown where `options` do not say.
    """
    shown = specials if options.specials is None else options.specials
    table = trace.table(options.site, options.head, words=options.words, specials=shown, punctuation=True)
    if options.specials is None and not shown and not table.weights.size:  # an output that ends at once
        table = trace.table(options.site, options.head, words=options.words, punctuation=True)
    table = table._replace(rows=piece_labels(table.rows), columns=piece_labels(table.columns))
    if not table.weights.size:
        raise TraceError("the input or the output has no words, so there is nothing to draw")
    return table


def alignment_figure(trace: Trace, options: ViewOptions) -> Figure:
    """Draw the matrix, long sources in several panels. Gold links are rings."""
    table = build_table(trace, options)
    n_rows, n_columns = table.weights.shape
    n_panels = max(1, -(-n_columns // MAX_COLUMNS))
    per_panel = -(-n_columns // n_panels)
    rows, columns = _label_lengths(table.rows), _label_lengths(table.columns)
    rise, run = math.sin(SLANT), math.cos(SLANT)  # of the labels of columns, which start in the middle of a cell
    beyond = max(run * length - CELL[0] * (per_panel - n % per_panel) for n, length in enumerate(columns))
    height = 1.8 + CELL[1] * n_rows + rise * max(0.0, max(columns) - LABEL_LENGTH)
    width = 2.2 + CELL[0] * per_panel + max(0.0, max(rows) - LABEL_LENGTH) + max(0.0, beyond)
    size = figure_size(width, n_panels * height)
    figure, grid = subplots(n_panels, 1, figsize=size, squeeze=False, layout="constrained")
    for panel in range(n_panels):
        part = slice(panel * per_panel, min((panel + 1) * per_panel, n_columns))
        axes = grid[panel][0]
        image = _draw_panel(axes, table, part, options)
        fraction = min(0.15, max(0.02, BAR_WIDTH / (CELL[0] * per_panel)))
        figure.colorbar(
            image, ax=axes, label="weight", fraction=fraction, aspect=max(5.0, CELL[1] * n_rows / BAR_WIDTH), pad=0.02
        )
    note = hidden_note(trace, table, options)
    if note:
        grid[-1][0].text(0.0, -0.02, note, transform=grid[-1][0].transAxes, ha="left", va="top", color=NOTE, fontsize=8)
    return figure


def _label_lengths(labels: Sequence[str]) -> list[float]:
    """Return the length of each label in inches, about."""
    return [LETTER_WIDTH * cell_len(label) for label in figure_labels(labels)]


def draw_alignment(axes: Axes, trace: Trace, options: ViewOptions) -> AxesImage:
    """Draw the matrix into axes, however long the source; return the image, of which a color bar can be made."""
    table = build_table(trace, options)
    return _draw_panel(axes, table, slice(0, len(table.columns)), options)


def _draw_panel(axes: Axes, table: AttentionTable, part: slice, options: ViewOptions) -> AxesImage:
    largest = max(1.0, float(table.weights.max(initial=0.0)))  # rows of some normalizers sum to more than 1
    image = axes.imshow(table.weights[:, part], cmap=options.cmap, vmin=0.0, vmax=largest, aspect="auto")
    _label_axes(axes, table, part)
    width, height = (inches / count for inches, count in zip(size_of(axes), image.get_size()[::-1], strict=True))
    if table.weights.size <= MAX_NUMBERED_CELLS and width >= MIN_CELL[0] and height >= MIN_CELL[1]:
        _write_numbers(axes, image, table.weights[:, part])
    for row, column in table.gold:
        if part.start <= column < part.stop:
            _draw_ring(axes, column - part.start, row)
    return image


def hidden_note(trace: Trace, table: AttentionTable, options: ViewOptions) -> str:
    """Return a note about the weight of start and end tokens that a figure leaves out, or an empty text."""
    record = trace.site(options.site)
    keys, queries = (
        trace.source if side == "source" else trace.target for side in (record.key_side, record.query_side)
    )
    shown = group_tokens(keys, options.words, False, True)
    rows = group_tokens(queries, options.words, False, True).positions
    if len(shown.labels) != len(table.columns) or len(rows) != len(table.rows):
        return ""
    hidden = sorted(set(range(len(keys.tokens))) - {position for group in shown.positions for position in group})
    mean = float(fold(trace.matrix(options.site, options.head), rows, [hidden]).mean())
    return f"not shown: {mean:.0%} of the weight, on start and end tokens" if mean >= MIN_NUMBER else ""


def _label_axes(axes: Axes, table: AttentionTable, part: slice) -> None:
    rows, columns = figure_labels(table.rows), figure_labels(table.columns[part])
    every_column, every_row = (
        max(1, math.ceil(LABEL_SPACE * len(labels) / inches))
        for labels, inches in zip((columns, rows), size_of(axes), strict=True)
    )
    shown = range(0, len(columns), every_column)
    axes.set_xticks(shown, columns[::every_column], rotation=math.degrees(SLANT), ha="left", rotation_mode="anchor")
    axes.set_yticks(range(0, len(rows), every_row), rows[::every_row])
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.2)
    axes.tick_params(which="minor", length=0)
    axes.set_xlabel(table.column_noun.singular)
    axes.set_ylabel(table.row_noun.singular)


def _write_numbers(axes: Axes, image: AxesImage, weights: np.ndarray) -> None:
    for (row, column), weight in np.ndenumerate(weights):
        if weight >= MIN_NUMBER:
            text = f"{weight:.2f}"[1 if weight < 0.995 else 0 :]
            color = "white" if _luminance(image.to_rgba(weight)) < DARK else "black"
            axes.text(column, row, text, ha="center", va="center", color=color, fontsize=8)


def _luminance(color: np.ndarray | tuple[float, ...]) -> float:
    """Return how light a color is, from 0 to 1 (ITU-R BT.601)."""
    return float(0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2])


def _draw_ring(axes: Axes, column: int, row: int) -> None:
    from matplotlib import patches

    axes.add_patch(patches.Circle((column, row), 0.42, fill=False, color=GOLD, linewidth=1.6))


def alignment_text(trace: Trace, options: ViewOptions | None = None, style: TextStyle | None = None) -> Text:
    """Return the matrix for a terminal, wide ones in several panels. Numbers are weights in hundredths."""
    options, style = options or ViewOptions(), style or TextStyle()
    table = build_table(trace, options, specials=True)
    check_count(table.weights.size, MAX_TERMINAL_CELLS, "cells")
    rows, columns = (list(map(one_line, labels)) for labels in (table.rows, table.columns))
    label_width = min(max((len(row) for row in rows), default=0), MAX_LABEL_WIDTH)
    n_panels = -(-len(columns) // max(1, (style.width - label_width - 2) // CELL_WIDTH))
    per_panel = -(-len(columns) // n_panels)  # panels of about equal width
    text = Text()
    for first in range(0, len(columns), per_panel):
        last = min(first + per_panel, len(columns))
        if first:
            text.append("\n")
        _append_panel(text, table.weights[:, first:last], rows, columns[first:last], label_width, style.unicode)
    legend = f"rows: {table.row_noun.plural}; columns: {table.column_noun.plural}; numbers: weight in hundredths"
    text.append(textwrap.fill(legend, max(style.width, 20)) + "\n", style="dim")
    return text


def _append_panel(
    text: Text, weights: np.ndarray, rows: list[str], columns: list[str], label_width: int, unicode: bool
) -> None:
    text.append(" " * (label_width + 2))
    for column in columns:
        text.append(f"{_clip(column, CELL_WIDTH - 1):>{CELL_WIDTH - 1}} ", style="bold")
    text.append("\n")
    for label, row in zip(rows, weights, strict=True):
        text.append(f"{_clip(label, label_width):>{label_width}}  ", style="bold")
        for weight in row.tolist():
            cell = shade_text(weight, unicode) + number_text(weight, unicode)
            text.append(cell, style="reverse" if weight >= 0.5 else "")
            text.append("  ")
        text.append("\n")


def _clip(word: str, width: int) -> str:
    return word if len(word) <= width else word[: width - 1] + "…"


VIEW = View(
    "weights as a matrix",
    figure=alignment_figure,
    axes=draw_alignment,
    text=alignment_text,
    page=lambda trace, options: page_html(trace, options_link("walk", trace, options)),
)

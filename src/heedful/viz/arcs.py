"""The arcs view: a text with arcs from each word to the words it attends to, and surprisals where it was predicted."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from heedful.errors import TraceError
from heedful.trace.schema import AttentionTable, SiteRecord, Trace
from heedful.trace.schema.table import group_tokens
from heedful.viz.alignment import build_table
from heedful.viz.base import View, ViewOptions
from heedful.viz.canvas import new_figure, size_of
from heedful.viz.limits import MAX_MARKS, check_count, figure_labels, figure_size
from heedful.viz.palette import INK, NOTE, STRONG

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MIN_WEIGHT = 0.05  # smaller weights have no arc; their sum is written below
MAX_LINE_WEIGHT = 10.0  # larger weights, which need not sum to 1, are drawn alike
CHARACTER_WIDTH = 0.1  # inches; all coordinates are in characters
NOTE_LETTER = 0.068  # inches per letter of the note below the words
ARC_HEIGHT = 0.6  # relative to the width of the arc
WORDS_BOTTOM = -4.2  # where arcs to later words start
READ = "read"  # the task whose input is predicted word by word


def arcs_figure(trace: Trace, options: ViewOptions) -> Figure:
    """Draw words in a row, arcs to earlier words above and to later words below, and surprisals where known."""
    figure = new_figure()
    axes = draw_arcs(figure.add_axes((0.0, 0.0, 1.0, 1.0)), trace, options, True)
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    figure.set_size_inches(figure_size(CHARACTER_WIDTH * (right - left), CHARACTER_WIDTH * (top - bottom)))
    return figure


def draw_arcs(axes: Axes, trace: Trace, options: ViewOptions, own_figure: bool = False) -> Axes:
    """Draw words and arcs into axes; a figure of our own becomes as wide as the words need."""
    record = trace.site(options.site)
    if record.query_side != record.key_side:
        raise TraceError(f"arcs: {record.site} attends from one text to another; use --view lines")
    table = build_table(trace, options)
    words = figure_labels(table.rows)
    centers = _word_centers(words)
    arcs = {(int(i), int(j)) for i, j in np.argwhere(table.weights >= MIN_WEIGHT) if i != j}
    check_count(len(arcs), MAX_MARKS, "arcs")
    surprisals = _surprisals(trace, record, options, len(words))
    two_way = bool((np.triu(table.weights, 1) > 0).any())
    letters = max(40, round(1.6 * centers[-1])) if own_figure else max(20, round(size_of(axes)[0] / NOTE_LETTER))
    legend = textwrap.wrap(_legend(table, arcs, two_way, bool(surprisals)), letters)
    above = max((centers[i] - centers[j] for i, j in arcs if i > j), default=2.0)
    below = max((centers[j] - centers[i] for i, j in arcs if i < j), default=0.0)
    left, right = centers[0] - 4, centers[-1] + 4
    legend_top = min(-7.6 if surprisals else WORDS_BOTTOM, WORDS_BOTTOM - ARC_HEIGHT * below / 2) - 0.6
    bottom, top = legend_top - 2 * len(legend), ARC_HEIGHT * above / 2 + 2
    _draw_arcs(axes, table, centers, arcs)
    _write_words(axes, words, centers, surprisals)
    axes.text(centers[0], legend_top, "\n".join(legend), va="top", color=NOTE, fontsize=8)
    axes.set(xlim=(left, right), ylim=(bottom, top))
    axes.axis("off")
    return axes


def _draw_arcs(axes: Axes, table: AttentionTable, centers: list[float], arcs: set[tuple[int, int]]) -> None:
    from matplotlib import patches

    for row, column in arcs:
        weight = float(table.weights[row, column])
        middle, width = (centers[row] + centers[column]) / 2, abs(centers[row] - centers[column])
        to_earlier = column < row
        axes.add_patch(
            patches.Arc(
                (middle, 0.0 if to_earlier else WORDS_BOTTOM), width, ARC_HEIGHT * width,
                theta1=0 if to_earlier else 180, theta2=180 if to_earlier else 360,
                color=STRONG, alpha=min(1.0, 0.15 + weight), lw=0.4 + 3.0 * min(weight, MAX_LINE_WEIGHT),
            )
        )  # fmt: skip


def _write_words(axes: Axes, words: list[str], centers: list[float], surprisals: list[float | None]) -> None:
    for index, word in enumerate(words):
        axes.text(centers[index], -1.2, word, ha="center", va="top", color=INK)
        if index < len(surprisals) and surprisals[index] is not None:
            axes.text(centers[index], -4.6, f"{surprisals[index]:.1f}", ha="center", va="top", color=NOTE, fontsize=8)


def _legend(table: AttentionTable, arcs: set[tuple[int, int]], two_way: bool, numbers: bool) -> str:
    drawn = sum(float(table.weights[arc]) for arc in arcs)
    others = float(table.weights.sum() - np.trace(table.weights))
    hidden = max(0.0, others - drawn) / max(1, len(table.rows))  # a sum of rounded numbers may be below 0
    direction = "other words (above: earlier words, below: later words)" if two_way else "earlier words"
    return (
        f"arcs: attention of each word to {direction}; weights under {MIN_WEIGHT:.0%} are not drawn: {hidden:.0%}"
        f" of a word's weight{'; numbers: surprisal in bits' if numbers else ''}"
    )


def _word_centers(labels: list[str]) -> list[float]:
    """Return the x coordinate of the center of each word, in characters."""
    centers, start = [], 0.0
    for label in labels:
        width = max(len(label), 3) + 2.5
        centers.append(start + width / 2)
        start += width
    return centers


def _surprisals(trace: Trace, record: SiteRecord, options: ViewOptions, n_rows: int) -> list[float | None]:
    """Return the surprisal of each row in bits; empty where the model did not predict these words.

    A language model predicts its input: each token one step earlier, the first never. Other tasks predict only
    their output.
    """
    of_source = record.query_side == "source"
    if of_source and trace.model.task != READ:
        return []
    side = trace.source if of_source else trace.target
    steps = [step.logp for step in trace.steps]
    token_logps: list[float | None] = [None, *steps] if of_source else [*steps]
    token_logps += [None] * (len(side.tokens) - len(token_logps))
    surprisals: list[float | None] = []
    groups = group_tokens(side, options.words, bool(options.specials), punctuation=True).positions
    if len(groups) != n_rows:  # a text of nothing but start and end tokens
        groups = group_tokens(side, options.words, True, punctuation=True).positions
    for positions in groups:
        known = [logp for logp in (token_logps[position] for position in positions) if logp is not None]
        surprisals.append(-sum(known) / math.log(2) if known else None)
    return surprisals


def _suits(trace: Trace, site: str | None) -> bool:
    """Return whether the alignment site attends within one text, as in a language model."""
    if site is not None or trace.alignment_site is None:
        return False
    record = trace.site()
    return record.query_side == record.key_side


VIEW = View("arcs between the words of one text, with surprisals", figure=arcs_figure, axes=draw_arcs, suits=_suits)

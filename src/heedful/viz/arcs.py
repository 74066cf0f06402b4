"""The arcs view: a sentence with arcs from each word to the earlier words it attends to, and surprisals."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from heedful.errors import TraceError
from heedful.trace.schema import NO_WORD, AttentionTable, Trace
from heedful.viz.alignment import build_table
from heedful.viz.base import View, ViewOptions
from heedful.viz.canvas import new_figure
from heedful.viz.limits import MAX_MARKS, check_count, figure_labels, figure_size
from heedful.viz.palette import INK, NOTE, STRONG

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MIN_WEIGHT = 0.05  # smaller weights have no arc; their sum is written below
MAX_LINE_WEIGHT = 10.0  # larger weights, which need not sum to 1, are drawn alike
CHARACTER_WIDTH = 0.1  # inches; all coordinates are in characters
ARC_HEIGHT = 0.6  # relative to the width of the arc


def arcs_figure(trace: Trace, options: ViewOptions) -> Figure:
    """Draw words in a row and an arc per weight; below each word its surprisal in bits, where known."""
    figure = new_figure()
    axes = draw_arcs(figure.add_axes((0.0, 0.0, 1.0, 1.0)), trace, options)
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    figure.set_size_inches(figure_size(CHARACTER_WIDTH * (right - left), CHARACTER_WIDTH * (top - bottom)))
    return figure


def draw_arcs(axes: Axes, trace: Trace, options: ViewOptions) -> Axes:
    """Draw words and arcs into axes."""
    record = trace.site(options.site)
    if record.query_side != record.key_side:
        raise TraceError(f"arcs: {record.site} attends from one text to another; use --view lines")
    table = build_table(trace, options)
    words = figure_labels(table.rows)
    centers = _word_centers(words)
    arcs = {(int(i), int(j)) for i, j in np.argwhere(table.weights >= MIN_WEIGHT) if i != j}
    check_count(len(arcs), MAX_MARKS, "arcs")
    legend = textwrap.wrap(_legend(table, arcs), max(40, round(1.6 * centers[-1])))
    widest = max((centers[i] - centers[j] for i, j in arcs), default=2.0)
    left, right = centers[0] - 4, centers[-1] + 4
    bottom, top = -8.0 - 2 * len(legend), ARC_HEIGHT * widest / 2 + 2
    _draw_arcs(axes, table, centers, arcs)
    _write_words(axes, words, centers, _surprisals(trace, record.query_side == "source", options), legend)
    axes.set(xlim=(left, right), ylim=(bottom, top))
    axes.axis("off")
    return axes


def _draw_arcs(axes: Axes, table: AttentionTable, centers: list[float], arcs: set[tuple[int, int]]) -> None:
    from matplotlib import patches

    for row, column in arcs:
        weight = float(table.weights[row, column])
        middle, width = (centers[row] + centers[column]) / 2, centers[row] - centers[column]
        axes.add_patch(
            patches.Arc(
                (middle, 0.0), width, ARC_HEIGHT * width, theta1=0, theta2=180,
                color=STRONG, alpha=min(1.0, 0.15 + weight), lw=0.4 + 3.0 * min(weight, MAX_LINE_WEIGHT),
            )
        )  # fmt: skip


def _write_words(
    axes: Axes, words: list[str], centers: list[float], surprisals: list[float | None], legend: list[str]
) -> None:
    for index, word in enumerate(words):
        axes.text(centers[index], -1.2, word, ha="center", va="top", color=INK)
        if index < len(surprisals) and surprisals[index] is not None:
            axes.text(centers[index], -4.6, f"{surprisals[index]:.1f}", ha="center", va="top", color=NOTE, fontsize=8)
    axes.text(centers[0], -7.6, "\n".join(legend), va="top", color=NOTE, fontsize=8)


def _legend(table: AttentionTable, arcs: set[tuple[int, int]]) -> str:
    drawn = sum(float(table.weights[arc]) for arc in arcs)
    hidden = (table.weights.sum() - np.trace(table.weights) - drawn) / max(1, len(table.rows))
    return (
        f"arcs: attention of each word to earlier words (weights under {MIN_WEIGHT:.0%} are not drawn: {hidden:.0%}"
        " of a word's weight); numbers: surprisal in bits"
    )


def _word_centers(labels: list[str]) -> list[float]:
    """Return the x coordinate of the center of each word, in characters."""
    centers, start = [], 0.0
    for label in labels:
        width = max(len(label), 3) + 2.5
        centers.append(start + width / 2)
        start += width
    return centers


def _surprisals(trace: Trace, of_source: bool, options: ViewOptions) -> list[float | None]:
    """Return the surprisal of each row in bits; a source token is predicted one step earlier, the first never."""
    side = trace.source if of_source else trace.target
    steps = [step.logp for step in trace.steps]
    surprisals: list[float | None] = []
    index_of_word: dict[int, int] = {}
    for token, logp in zip(side.tokens, [None, *steps] if of_source else steps, strict=False):
        bits = None if logp is None else -logp / math.log(2)
        if token.word == NO_WORD:
            if options.specials or token.role == "normal":
                surprisals.append(bits)
        elif options.words and token.word in index_of_word:
            index = index_of_word[token.word]
            surprisals[index] = (surprisals[index] or 0.0) + (bits or 0.0)
        else:
            index_of_word[token.word] = len(surprisals)
            surprisals.append(bits)
    return surprisals


def _suits(trace: Trace, site: str | None) -> bool:
    """Return whether the alignment site attends within one text, as in a language model."""
    if site is not None or trace.alignment_site is None:
        return False
    record = trace.site()
    return record.query_side == record.key_side


VIEW = View("arcs between the words of one text, with surprisals", figure=arcs_figure, axes=draw_arcs, suits=_suits)

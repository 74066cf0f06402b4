"""The beam view: the hypotheses of a beam search as a tree."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from heedful.errors import TraceError
from heedful.trace.schema import BeamTree, Trace
from heedful.viz.base import View, ViewOptions
from heedful.viz.canvas import subplots
from heedful.viz.limits import MAX_MARKS, check_count, figure_label, figure_size
from heedful.viz.palette import STRONG

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKS = {"finished": " ■", "pruned": " ×", "active": ""}
LEGEND = "dark: best output; ×: pruned; ■: finished; line width: probability"


def beam_figure(trace: Trace, options: ViewOptions) -> Figure:
    """Draw one node per token; the best output is dark."""
    tree = _get_tree(trace)
    last_step = max(node.step for node in tree.nodes)
    figure, axes = subplots(figsize=figure_size(2.0 + 1.1 * (last_step + 2), 1.0 + 0.55 * tree.beam_size))
    draw_beam(axes, trace, options)
    return figure


def _get_tree(trace: Trace) -> BeamTree:
    if trace.beam is None:
        raise TraceError("this trace has no beam: record it with --beam 5")
    if not trace.beam.nodes:
        raise TraceError("the beam of this trace has no hypotheses")
    check_count(len(trace.beam.nodes), MAX_MARKS, "hypotheses")
    return trace.beam


def draw_beam(axes: Axes, trace: Trace, _: ViewOptions) -> Axes:
    """Draw the tree into axes."""
    tree = _get_tree(trace)
    best = _best_path(tree)
    last_step = max(node.step for node in tree.nodes)
    coordinates = _node_coordinates(tree)
    for node in tree.nodes:
        (x0, y0), (x1, y1) = coordinates[node.parent], coordinates[node.id]
        is_best = node.id in best
        color = STRONG if is_best else "#9a9a9a"
        width = 0.6 + 3 * math.exp(node.logp)
        axes.plot([x0, x1], [y0, y1], color=color, lw=width, alpha=1.0 if is_best else 0.5, zorder=1)
        axes.text(
            x1, y1, figure_label(node.text) + MARKS[node.state], ha="center", va="center", fontsize=8, color=color,
            bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": color, "lw": 1.2 if is_best else 0.5},
            zorder=2,
        )  # fmt: skip
    axes.text(-1, 0.62, LEGEND, fontsize=8)
    axes.set(xlim=(-1.3, last_step + 0.8), ylim=(-tree.beam_size + 0.4, 0.9))
    axes.axis("off")
    return axes


def _best_path(tree: BeamTree) -> set[int]:
    """Return the ids of the nodes on the path of the best output."""
    path: set[int] = set()
    node = tree.best[0] if tree.best else -1
    while node >= 0:
        path.add(node)
        node = tree.nodes[node].parent
    return path


def _node_coordinates(tree: BeamTree) -> dict[int, tuple[float, float]]:
    """Return where each node is drawn: steps go right, hypotheses of a step go down."""
    coordinates: dict[int, tuple[float, float]] = {-1: (-1.0, 0.0)}
    n_drawn: dict[int, int] = {}
    for node in tree.nodes:
        coordinates[node.id] = (float(node.step), -float(n_drawn.get(node.step, 0)))
        n_drawn[node.step] = n_drawn.get(node.step, 0) + 1
    return coordinates


VIEW = View("the tree of a beam search", figure=beam_figure, axes=draw_beam)

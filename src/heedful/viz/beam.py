"""The beam view: the hypotheses of a beam search as a tree."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from heedful.errors import TraceError
from heedful.trace.schema import BeamTree, Trace
from heedful.viz.base import View, ViewOptions
from heedful.viz.canvas import subplots
from heedful.viz.limits import MAX_MARKS, check_count, figure_label, figure_size, piece_labels
from heedful.viz.palette import STRONG

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKS = {"finished": " ■", "pruned": " ×", "active": ""}
MAX_STEPS = 12  # per row of the figure; a longer tree continues in the next row
OTHER = "#9a9a9a"  # of hypotheses that are not the best
LEGEND = "dark: best output; ×: pruned; ■: finished; line width: probability"


def beam_figure(trace: Trace, options: ViewOptions) -> Figure:
    """Draw one node per token, long trees in several rows; the best output is dark."""
    tree = _get_tree(trace)
    n_steps = _count_steps(tree)
    n_bands = -(-n_steps // MAX_STEPS)
    per_band = -(-n_steps // n_bands)
    n_lanes = 1 - min(y for _, y in _node_coordinates(tree).values())
    size = figure_size(2.0 + 1.1 * (per_band + 1), 0.5 + n_bands * (0.5 + 0.55 * n_lanes))
    figure, grid = subplots(n_bands, 1, figsize=size, squeeze=False)
    for band, axes in enumerate(grid[:, 0]):
        _draw_band(axes, tree, band * per_band, per_band, bool(options.specials))
    figure.suptitle(LEGEND if n_bands == 1 else f"{LEGEND}; each row continues the row above", fontsize=8)
    figure.tight_layout()
    return figure


def draw_beam(axes: Axes, trace: Trace, options: ViewOptions) -> Axes:
    """Draw the tree into axes, in one row."""
    tree = _get_tree(trace)
    _draw_band(axes, tree, 0, _count_steps(tree), bool(options.specials))
    axes.set_title(LEGEND, fontsize=8)
    return axes


def _get_tree(trace: Trace) -> BeamTree:
    if trace.beam is None:
        raise TraceError("this trace has no beam: record it with --beam 5")
    if not trace.beam.nodes:
        raise TraceError("the beam of this trace has no hypotheses")
    check_count(len(trace.beam.nodes), MAX_MARKS, "hypotheses")
    return trace.beam


def _count_steps(tree: BeamTree) -> int:
    return max(node.step for node in tree.nodes) + 1


def _draw_band(axes: Axes, tree: BeamTree, first: int, n_steps: int, show_ends: bool) -> None:
    """Draw the nodes of some steps, and again the last words of the steps before them."""
    best = _best_path(tree)
    labels = _node_labels(tree, show_ends)
    coordinates = _node_coordinates(tree)
    nodes = [node for node in tree.nodes if first <= node.step < first + n_steps]
    for node in nodes:
        (x0, y0), (x1, y1) = coordinates[node.parent], coordinates[node.id]
        color, alpha = (STRONG, 1.0) if node.id in best else (OTHER, 0.5)
        axes.plot([x0, x1], [y0, y1], color=color, lw=0.6 + 3 * math.exp(node.logp), alpha=alpha, zorder=1)
        _write_node(axes, coordinates[node.id], labels[node.id], node.id in best)
    for parent in sorted({node.parent for node in nodes if node.parent >= 0} - {node.id for node in nodes}):
        _write_node(axes, coordinates[parent], f"… {labels[parent]}", parent in best, repeated=True)
    lowest = min(y for _, y in coordinates.values())
    axes.set(xlim=(first - 1.5, first + n_steps - 0.2), ylim=(lowest - 0.6, 0.6))
    axes.axis("off")


def _write_node(axes: Axes, at: tuple[float, float], text: str, is_best: bool, repeated: bool = False) -> None:
    color = STRONG if is_best else OTHER
    axes.text(
        *at, figure_label(text), ha="center", va="center", fontsize=8, color=color,
        style="italic" if repeated else "normal",
        bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none" if repeated else color,
              "lw": 1.2 if is_best else 0.5},
        zorder=2,
    )  # fmt: skip


def _node_labels(tree: BeamTree, show_ends: bool) -> dict[int, str]:
    """Return the label of each node: its piece and the mark of its state, of an end token the mark alone."""
    pieces = piece_labels([node.text for node in tree.nodes])
    return {
        node.id: MARKS[node.state].strip() if node.state == "finished" and not show_ends else piece + MARKS[node.state]
        for node, piece in zip(tree.nodes, pieces, strict=True)
    }


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

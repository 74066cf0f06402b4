"""The steps view: the most likely next words at every decoding step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from heedful.errors import TraceError
from heedful.trace.schema import Trace
from heedful.viz.base import View, ViewOptions
from heedful.viz.canvas import subplots
from heedful.viz.limits import MAX_PANELS, check_count, figure_label, figure_labels, figure_size, piece_labels
from heedful.viz.palette import PALE, STRONG

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_CANDIDATES = 5  # per step
MAX_PANELS_PER_ROW = 5


def steps_figure(trace: Trace, _: ViewOptions) -> Figure:
    """Draw bars of the most likely words of each step; the generated word is dark."""
    n_steps = len(trace.steps)
    if not any(step.top for step in trace.steps):
        raise TraceError("this trace does not have the most likely words of each step")
    n_columns = min(n_steps, MAX_PANELS_PER_ROW)
    n_rows = -(-n_steps // n_columns)
    check_count(n_steps, MAX_PANELS, "panels")
    size = figure_size(2.6 * n_columns, 0.6 + 1.5 * n_rows)
    figure, grid = subplots(n_rows, n_columns, figsize=size, squeeze=False)
    for t, axes in enumerate(grid.flat):
        if t >= n_steps:
            axes.axis("off")
            continue
        candidates = trace.steps[t].top[:N_CANDIDATES]
        token = trace.target.tokens[t]
        colors = [STRONG if candidate.id == token.id else PALE for candidate in candidates]
        axes.barh(range(len(candidates)), [math.exp(candidate.logp) for candidate in candidates], color=colors)
        axes.set_yticks(range(len(candidates)), figure_labels(piece_labels([c.text for c in candidates])), fontsize=8)
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.set_title(
            f"{t + 1}: {figure_label(piece_labels([token.text, *(c.text for c in candidates)])[0])}", fontsize=9
        )
        axes.tick_params(labelsize=7, length=0)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("probability of the next word (dark: generated)", fontsize=9)
    figure.tight_layout()
    return figure


VIEW = View("the most likely words of each step", figure=steps_figure)

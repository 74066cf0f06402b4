"""The heads view: a small matrix per head."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from heedful.terminal_text import shorten
from heedful.trace.schema import Trace, entropy_ratio
from heedful.viz.alignment import build_table
from heedful.viz.base import View, ViewOptions
from heedful.viz.canvas import subplots
from heedful.viz.limits import MAX_PANELS, check_count, figure_label, figure_size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABEL_SPACING = 0.14  # inches
MAX_SIDE = 5.0  # inches of a panel; longer texts have a label at every second or third word
MAX_LETTERS = 24  # of a label


def heads_figure(trace: Trace, options: ViewOptions) -> Figure:
    """Draw the heads of a site; by default of all sites of the same kind as the alignment site, one row per site."""
    labels = build_table(trace, options)
    chosen = trace.site(options.site)
    kind = (chosen.kind, chosen.query_side, chosen.key_side)
    same_kind = [record for record in trace.sites if (record.kind, record.query_side, record.key_side) == kind]
    records = [chosen] if options.site else same_kind
    n_heads = max(record.heads for record in records)
    check_count(n_heads * len(records), MAX_PANELS, "panels")
    n_rows, n_columns = labels.weights.shape
    width, height = (min(MAX_SIDE, max(2.0, LABEL_SPACING * count)) for count in (n_columns, n_rows))
    figure, grid = subplots(
        len(records),
        n_heads,
        figsize=figure_size(1.6 + width * n_heads, 1.6 + (height + 0.3) * len(records)),
        squeeze=False,
        layout="constrained",
    )
    for index, (site_axes, record) in enumerate(zip(grid, records, strict=True)):
        for head, axes in enumerate(site_axes):
            if head >= record.heads:
                axes.axis("off")
                continue
            table = build_table(trace, options._replace(site=record.site, head=head))
            axes.imshow(table.weights, cmap=options.cmap, vmin=0.0, vmax=1.0, aspect="auto")
            entropy = float(entropy_ratio(table.weights).mean())
            axes.set_title(f"{figure_label(record.site)}, head {head}\nentropy {entropy:.0%} of uniform", fontsize=7)
            is_lowest = all(head >= below.heads for below in records[index + 1 :])
            axes.set_xticks(*(_spaced(table.columns, width) if is_lowest else ([], [])), rotation=90, fontsize=7)
            axes.set_yticks(*(_spaced(table.rows, height) if head == 0 else ([], [])), fontsize=7)
            axes.tick_params(length=0)
            axes.spines[:].set_color("#bbbbbb")
    figure.supxlabel(labels.column_noun.plural, fontsize=9)
    figure.supylabel(labels.row_noun.plural, fontsize=9)
    return figure


def _spaced(labels: list[str], side: float) -> tuple[list[int], list[str]]:
    """Return the positions and texts of as many labels as fit a side of so many inches."""
    every = math.ceil(len(labels) * LABEL_SPACING / max(side, LABEL_SPACING))
    positions = list(range(0, len(labels), every))
    return positions, [shorten(labels[position], MAX_LETTERS) for position in positions]


VIEW = View("a small matrix per head", figure=heads_figure)

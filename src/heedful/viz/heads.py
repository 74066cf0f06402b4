"""The heads view: a small matrix per head."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heedful.trace.schema import Trace, entropy_ratio
from heedful.viz.alignment import build_table
from heedful.viz.base import View, ViewOptions
from heedful.viz.canvas import subplots
from heedful.viz.limits import MAX_PANELS, check_count, figure_label, figure_size

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def heads_figure(trace: Trace, options: ViewOptions) -> Figure:
    """Draw the heads of a site; by default of all sites of the same kind as the alignment site, one row per site."""
    labels = build_table(trace, options)
    chosen = trace.site(options.site)
    kind = (chosen.kind, chosen.query_side, chosen.key_side)
    same_kind = [record for record in trace.sites if (record.kind, record.query_side, record.key_side) == kind]
    records = [chosen] if options.site else same_kind
    n_heads = max(record.heads for record in records)
    check_count(n_heads * len(records), MAX_PANELS, "panels")
    figure, grid = subplots(
        len(records),
        n_heads,
        figsize=figure_size(0.6 + 2.0 * n_heads, 0.6 + 2.1 * len(records)),
        squeeze=False,
        layout="constrained",
    )
    for site_axes, record in zip(grid, records, strict=True):
        for head, axes in enumerate(site_axes):
            if head >= record.heads:
                axes.axis("off")
                continue
            table = trace.table(record.site, head, words=options.words, specials=options.specials)
            axes.imshow(table.weights, cmap=options.cmap, vmin=0.0, vmax=1.0, aspect="auto")
            entropy = float(entropy_ratio(table.weights).mean())
            axes.set_title(f"{figure_label(record.site)}, head {head}\nentropy {entropy:.0%} of uniform", fontsize=7)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines[:].set_color("#bbbbbb")
    figure.supxlabel(labels.column_noun.plural, fontsize=9)
    figure.supylabel(labels.row_noun.plural, fontsize=9)
    return figure


VIEW = View("a small matrix per head", figure=heads_figure)

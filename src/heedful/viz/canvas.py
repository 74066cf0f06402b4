"""Figures of our own: without pyplot, so that no backend is chosen and no list of open figures grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_figure(**options: Any) -> Figure:
    """Return an empty figure; `options` are those of matplotlib's Figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(**options)
    FigureCanvasAgg(figure)  # measures text; other formats than PNG bring their own
    return figure


def subplots(
    rows: int = 1,
    columns: int = 1,
    *,
    squeeze: bool = True,
    sharey: bool = False,
    height_ratios: list[float] | None = None,
    **options: Any,
) -> tuple[Figure, Any]:
    """Return a figure and its axes, as `pyplot.subplots` does."""
    figure = new_figure(**options)
    return figure, figure.subplots(rows, columns, squeeze=squeeze, sharey=sharey, height_ratios=height_ratios)


def size_of(axes: Axes) -> tuple[float, float]:
    """Return the width and the height of axes in inches."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    box = axes.get_window_extent()
    return box.width / figure.dpi, box.height / figure.dpi

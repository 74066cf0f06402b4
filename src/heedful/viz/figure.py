"""Figures by matplotlib: PNG, SVG or PDF."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib

from heedful.atomic_write import atomic_write
from heedful.errors import TraceError, nearest
from heedful.trace.schema import Trace
from heedful.viz.base import ViewOptions
from heedful.viz.fonts import figure_style
from heedful.viz.limits import DPI, check_pixels, figure_labels
from heedful.viz.views import get_view

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
FONT_SIZE = 11


def draw(trace: Trace, path: Path, view: str = "alignment", options: ViewOptions | None = None) -> None:
    """Draw a view of a trace; the file is written atomically."""
    options = options or ViewOptions()
    function = get_view(view, "figure").figure
    assert function is not None
    texts = [*trace.source.words, *trace.target.words, *(token.text for token in trace.target.tokens)]
    save_figure(lambda: function(trace, options), texts, path)


def save_figure(build: Callable[[], Figure], texts: Iterable[str], path: Path) -> None:
    """Build a figure with fonts for its texts and save it; the file is written atomically."""
    if path.suffix.lower() not in FORMATS:
        raise TraceError(f"{path}: cannot draw as {path.suffix!r}; {nearest(path.suffix, FORMATS)}")
    style = {**figure_style(figure_labels(texts)), "font.size": FONT_SIZE}
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # `figure_style` has warned once
        figure = build()
        if path.suffix.lower() == ".png":
            _check_bitmap(figure)
        with atomic_write(path, TraceError) as draft:
            figure.savefig(draft, dpi=DPI, bbox_inches="tight")


def _check_bitmap(figure: Figure) -> None:
    """Raise if the figure, with the labels that stand out of it, has too many pixels."""
    check_pixels(*figure.get_size_inches())
    box = figure.get_tightbbox()
    check_pixels(box.width, box.height)

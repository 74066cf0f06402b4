"""Draw a trace, or any attention weights, into the user's own axes or into a new figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import matplotlib
import numpy as np

from heedful import registry
from heedful.arguments import python_errors
from heedful.errors import ArgumentError, nearest
from heedful.trace.schema import Trace
from heedful.viz.base import Output, ViewOptions
from heedful.viz.figure import FONT_SIZE
from heedful.viz.fonts import find_fonts
from heedful.viz.palette import COLORMAP
from heedful.viz.views import default_view, get_view

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


def plot(  # noqa: PLR0913 - one argument per choice
    trace: Trace | Any,
    *,
    ax: Axes | None = None,
    view: str | None = None,
    title: str | None = None,
    words: bool = True,
    specials: bool = False,
    site: str | None = None,
    head: int | None = None,
    size: tuple[float, float] | None = None,
    font: str | float | None = None,
    cmap: str = COLORMAP,
    source: Sequence[str] | None = None,
    target: Sequence[str] | None = None,
) -> Artist:
    """Draw a trace, or a matrix of attention weights, and return the artist.

    `ax` are the axes to draw into; without them, a new figure of pyplot is drawn, as large as the text needs or of
    `size` (width, height) in inches. Axes of `pyplot.subplots(layout="constrained")` leave room for long words and a
    title. `view` is one of "alignment", "lines", "arcs" and "beam", which draw into one
    axes, or "heads", "steps", "photo", "words" and "history", which need a figure of their own; by default the one
    that suits the trace. `words=False` shows subwords, `specials=True` shows start and end tokens, `site` and `head`
    choose an attention (default: the alignment, the mean of its heads). `font` is a family or a size in points,
    `cmap` one of matplotlib's color maps.

    The artist of "alignment" is an image, for which `ax.figure.colorbar(artist)` makes a color bar. Other views return
    the axes, or the figure that they fill.

    Weights of anything else are an array (target, source) or (target, head, source); `source` and `target` are
    their words.

    >>> import heedful
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> image = heedful.plot([[0.9, 0.1], [0.2, 0.8]], ax=ax, source=["a", "cat"], target=["un", "chat"], title="mine")
    >>> image.axes is ax, ax.get_title()
    (True, 'mine')
    """
    if not isinstance(trace, Trace):
        trace = _trace_of(trace, source, target)
    elif source is not None or target is not None:
        raise ArgumentError("source, target: a trace has words of its own; they are for plain weights")
    _check(cmap, size, ax)
    options = ViewOptions(site, head, words, specials or None, cmap=cmap)
    with python_errors(), _style(trace, font, ax is not None) as further_fonts:
        if ax is None:
            return _draw_figure(trace, view, options, title, size)
        artist = _draw_axes(trace, ax, view, options, title)
        _set_font(ax, font, further_fonts)
        return artist


def _check(cmap: str, size: tuple[float, float] | None, ax: Axes | None) -> None:
    if cmap not in matplotlib.colormaps:
        raise ArgumentError(f'cmap="{cmap}": no such color map; {_close_names(cmap)}')
    if ax is not None and size is not None:
        raise ArgumentError("size: axes have the size of their figure; give ax or size")


def _close_names(cmap: str) -> str:
    """Return the hint for a misspelt color map, without the list of all 180."""
    return nearest(cmap, sorted(matplotlib.colormaps)).partition("known: ")[0].strip() or "such as Blues or viridis"


def _trace_of(weights: Any, source: Sequence[str] | None, target: Sequence[str] | None) -> Trace:
    """Return a trace of plain weights: an array, a list of rows, or a tensor."""
    try:
        array = np.asarray(weights.detach().cpu() if hasattr(weights, "detach") else weights, dtype=np.float64)
    except (TypeError, ValueError):
        kind = type(weights).__name__
        raise ArgumentError(f"trace: expected a trace or a matrix of weights, got {kind}") from None
    if array.ndim not in (2, 3):
        raise ArgumentError(f"trace: expected weights (target, source) or (target, head, source), got {array.shape}")
    columns = [str(n + 1) for n in range(array.shape[-1])] if source is None else list(source)
    rows = [str(n + 1) for n in range(array.shape[0])] if target is None else list(target)
    return Trace.from_weights(columns, rows, array)


def _draw_axes(trace: Trace, ax: Axes, view: str | None, options: ViewOptions, title: str | None) -> Artist:
    chosen = get_view(view or default_view(trace, options.site, "axes"))
    if chosen.axes is None:
        names = [name for name in registry.known_names("view") if "axes" in get_view(name).outputs()]
        raise ArgumentError(
            f'view="{view}": fills a figure of its own, so it takes no ax; views for one ax: {", ".join(names)}'
        )
    artist = chosen.axes(ax, trace, options)
    if title is not None:
        ax.set_title(title)
    return artist


def _draw_figure(
    trace: Trace, view: str | None, options: ViewOptions, title: str | None, size: tuple[float, float] | None
) -> Artist:
    from matplotlib import pyplot

    output: Output = "figure"
    chosen = get_view(view or default_view(trace, options.site, output), output)
    assert chosen.figure is not None
    figure = chosen.figure(trace, options)
    if size is not None:
        figure.set_size_inches(size)
    axes = figure.axes
    single = chosen.axes is not None and len(axes) <= 2  # a matrix has a color bar
    if title is not None:
        if single:
            axes[0].set_title(title)
        else:
            figure.suptitle(title)
    pyplot.figure(figure)  # shown by the user's backend, in a window or below the cell of a notebook
    if not single:
        return cast("Artist", figure)
    return cast("Artist", axes[0].images[0] if axes[0].images else axes[0])


def _set_font(ax: Axes, font: str | float | None, further: list[str]) -> None:
    """Set the font of the labels that the user's axes had before, and add what their font lacks."""
    for label in (*ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label, ax.title):
        if isinstance(font, str):
            label.set_fontfamily([font, *further])
        elif font is not None:
            label.set_fontsize(font)
        if further and not isinstance(font, str):
            label.set_fontfamily([*label.get_fontfamily(), *further])


@contextmanager
def _style(trace: Trace, font: str | float | None, in_users_axes: bool) -> Iterator[list[str]]:
    """Apply the fonts of a figure while it is drawn, and yield those that the first one lacks characters of.

    In the user's own axes their style is kept.
    """
    texts = [*trace.source.words, *trace.target.words, *(token.text for token in trace.target.tokens)]
    default, *further = find_fonts(texts)
    families = list(matplotlib.rcParams["font.family"]) if in_users_axes else [default]
    style: dict[Any, Any] = {"text.parse_math": False}
    if isinstance(font, str):
        families = [font]
    elif font is not None:
        style["font.size"] = font
    elif not in_users_axes:
        style["font.size"] = FONT_SIZE
    interactive = matplotlib.is_interactive()
    try:
        with matplotlib.rc_context({**style, "font.family": [*families, *further]}):
            yield further
            interactive = matplotlib.is_interactive()
    finally:  # a notebook's backend turns this on when it is loaded, which the first figure does
        matplotlib.interactive(interactive)

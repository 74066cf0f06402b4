"""The interface of a view: the traces it suits, and how it is drawn in a terminal, a figure or a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from heedful.trace.schema import Trace
from heedful.viz.palette import COLORMAP

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.text import Text

Output = Literal["terminal", "figure", "axes", "page"]


class ViewOptions(NamedTuple):
    """Which part of a trace to show."""

    site: str | None = None  # None: the alignment site
    head: int | None = None  # None: the mean over heads
    words: bool = True  # False: tokens as the vocabulary has them
    specials: bool | None = None  # start and end tokens; None: not in figures, elsewhere shown
    smooth: bool = True  # of images: weights upsampled smoothly
    cmap: str = COLORMAP  # matplotlib's name of a color map


class TextStyle(NamedTuple):
    """The capabilities of a terminal."""

    width: int = 100  # columns
    unicode: bool = True


@dataclass(frozen=True, slots=True)
class View:
    """One way to show a trace. Functions that are None mark outputs that the view does not have.

    `figure` returns a matplotlib figure, `axes` draws into given axes and returns the artist, `text` returns the text
    for a terminal, `page` the HTML of a page. `suits` returns whether the view is the default for a trace and a site.
    """

    summary: str  # for help, a few words
    figure: Callable[[Trace, ViewOptions], Figure] | None = None
    text: Callable[[Trace, ViewOptions, TextStyle], Text] | None = None
    page: Callable[[Trace, ViewOptions], str] | None = None
    suits: Callable[[Trace, str | None], bool] | None = None
    axes: Callable[[Axes, Trace, ViewOptions], Artist] | None = None  # views of several panels have none

    def outputs(self) -> tuple[Output, ...]:
        """Return the available outputs."""
        known: tuple[tuple[Output, object], ...] = (
            ("terminal", self.text),
            ("figure", self.figure),
            ("axes", self.axes),
            ("page", self.page),
        )
        return tuple(name for name, function in known if function is not None)

"""How a trace shows itself: one line in a console, its page in a notebook, a figure in the user's own axes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from heedful import registry
from heedful.errors import TraceError
from heedful.terminal_text import one_line
from heedful.trace.schema.fold import Array
from heedful.trace.schema.record import Record

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from pandas import DataFrame

    from heedful.trace.schema.trace import Trace

# Drawing is further down the rooms; it is imported when a trace is first drawn, so that reading one stays light.
NOTEBOOK_HTML, PLOT = "heedful.viz.page:notebook_html", "heedful.viz.plot:plot"
SHOW_PAGE = "heedful.viz.open_page:show_page"
MAX_TEXT = 40  # letters of input and output in a console


class TraceDisplay(Record):
    """The methods of a trace that show it or hand its numbers to other tools."""

    def __repr__(self) -> str:
        trace = cast("Trace", self)
        sites = f"{len(trace.sites)} attention site{'s' if len(trace.sites) != 1 else ''}"
        edits = f", {len(trace.edits)} edit{'s' if len(trace.edits) != 1 else ''}" if trace.edits else ""
        return (
            f"<Trace of {one_line(trace.model.name)}: {_shorten(trace.source.text)} -> {_shorten(trace.target.text)},"
            f" {len(trace.target.tokens)} x {len(trace.source.tokens)} tokens, {sites}{edits}>"
        )

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        """Return the interactive page in a frame, which a notebook displays."""
        html: str = registry.resolve(NOTEBOOK_HTML)(self)
        return html

    def plot(self, **options: Any) -> Artist:
        """Draw the trace into your own axes, or into a new figure, and return the artist.

        The arguments are those of `heedful.plot`: `ax`, `view`, `title`, `words`, `specials`, `site`, `head`, `size`,
        `font` and `cmap`.

        >>> from matplotlib.figure import Figure
        >>> from heedful.trace.schema import Trace
        >>> trace = Trace.from_weights(["a", "cat"], ["un", "chat"], [[0.9, 0.1], [0.2, 0.8]])
        >>> ax = Figure().subplots()
        >>> trace.plot(ax=ax, title="alignment", cmap="viridis").axes is ax
        True
        """
        artist: Artist = registry.resolve(PLOT)(self, **options)
        return artist

    def show(self, path: str | Path | None = None) -> Path:
        """Open the interactive page in a browser and return its file; without a screen, only write the file.

        The page is one file that needs no server, at `path` or in a temporary folder.
        """
        file: Path = registry.resolve(SHOW_PAGE)(self, path)
        return file

    def to_numpy(
        self, site: str | None = None, head: int | None = None, *, words: bool = True, specials: bool = True
    ) -> Array:
        """Return the weights as an array (output, input), the same numbers as those of `to_pandas`.

        By word; with `words=False` by token. `site` and `head` choose an attention (default: the alignment, the mean
        of its heads). `weights(site)` has each head, and `array(name)` every other tensor.

        >>> from heedful.trace.schema import Trace
        >>> Trace.from_weights(["a", "cat"], ["chat"], [[0.25, 0.75]]).to_numpy()
        array([[0.25, 0.75]])
        """
        return cast("Trace", self).table(site, head, words=words, specials=specials).weights

    def to_pandas(
        self, site: str | None = None, head: int | None = None, *, words: bool = True, specials: bool = True
    ) -> DataFrame:
        """Return the weights as a data frame: a row per output word, a column per input word.

        Arguments as in `to_numpy`. Needs pandas.
        """
        try:
            from pandas import DataFrame
        except ImportError:
            raise TraceError("a data frame needs pandas: pip install pandas") from None
        table = cast("Trace", self).table(site, head, words=words, specials=specials)
        frame = DataFrame(table.weights, index=table.rows, columns=table.columns)
        return frame.rename_axis(index=table.row_noun.singular, columns=table.column_noun.singular)


def _shorten(text: str) -> str:
    text = one_line(text)
    return repr(text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…")

"""How a trace shows itself: one line in a console, its page in a notebook, a figure in the user's own axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from heedful import registry
from heedful.terminal_text import one_line
from heedful.trace.schema.record import Record

if TYPE_CHECKING:
    from heedful.trace.schema.trace import Trace

# Drawing is further down the rooms; it is imported when a trace is first drawn, so that reading one stays light.
NOTEBOOK_HTML = "heedful.viz.page:notebook_html"
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


def _shorten(text: str) -> str:
    text = one_line(text)
    return repr(text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…")

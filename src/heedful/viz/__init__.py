"""Views of a trace: text for a terminal, figures, and interactive pages. Imports no torch; matplotlib only to draw."""

from heedful.trace.schema import Trace
from heedful.viz.alignment import alignment_text
from heedful.viz.base import TextStyle, View, ViewOptions
from heedful.viz.page import notebook_html, page_html, write_page

Trace.to_notebook = notebook_html  # notebooks show the page of a trace from now on

__all__ = ["TextStyle", "View", "ViewOptions", "alignment_text", "page_html", "write_page"]

"""Pure functions from a trace to a terminal, a picture or a page. Without torch; matplotlib only to draw."""

from heedful.record import Trace
from heedful.view.page import in_notebook, page_html, write_page
from heedful.view.terminal import alignment_text

Trace.in_notebooks = in_notebook  # from now on a notebook shows the page of a trace

__all__ = ["alignment_text", "page_html", "write_page"]

"""Views of a trace: text for a terminal, figures, and interactive pages. Imports no torch; matplotlib only to draw."""

from heedful.viz.alignment import alignment_text
from heedful.viz.base import TextStyle, View, ViewOptions
from heedful.viz.page import page_html, write_page

__all__ = ["TextStyle", "View", "ViewOptions", "alignment_text", "page_html", "write_page"]

"""Pure functions from a trace to a terminal or a picture. No torch; matplotlib only where it draws."""

from heedful.view.terminal import alignment_text

__all__ = ["alignment_text"]

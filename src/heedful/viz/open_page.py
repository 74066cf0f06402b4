"""Open the interactive page of a trace in a browser."""

from __future__ import annotations

import os
import sys
import tempfile
import webbrowser
from pathlib import Path

from heedful.trace.schema import Trace
from heedful.viz.page import write_page


def show_page(trace: Trace, path: str | Path | None = None) -> Path:
    """Write the page, by default into a new temporary folder, open it where there is a screen, and return the file."""
    if path is None:
        path = Path(tempfile.mkdtemp(prefix="heedful-")) / "trace.html"  # the browser reads it after we return
    path = Path(path).absolute()
    write_page(trace, path)
    if has_screen():
        webbrowser.open(path.as_uri())
    return path


def has_screen() -> bool:
    """Return whether a browser can open a window; without one, `webbrowser` would start a text browser and wait."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))

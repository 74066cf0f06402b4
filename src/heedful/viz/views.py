"""The table of views. A new view is a module with a `VIEW` and one line here.

Modules are imported when a view is first used. Users add views with `heedful.register("view", name, view)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from heedful import registry
from heedful.errors import TraceError, nearest

if TYPE_CHECKING:
    from heedful.trace.schema import Trace
    from heedful.viz.base import Output, View

VIEWS: Mapping[str, str] = {
    "alignment": "heedful.viz.alignment:VIEW",
    "lines": "heedful.viz.lines:VIEW",
    "heads": "heedful.viz.heads:VIEW",
    "steps": "heedful.viz.steps:VIEW",
    "beam": "heedful.viz.beam:VIEW",
    "photo": "heedful.viz.photo:VIEW",
    "words": "heedful.viz.words:VIEW",
    "arcs": "heedful.viz.arcs:VIEW",
    "history": "heedful.viz.history:VIEW",
}
DEFAULT = "alignment"  # for traces that no other view suits
ADVICE: Mapping[Output, str] = {
    "terminal": "print it without -o",
    "figure": "draw it with -o {name}.png",
    "axes": "",
    "page": "write it with -o {name}.html",
}


def get_view(name: str, output: Output | None = None) -> View:
    """Return the view with a name, which must be available as `output`."""
    if not registry.is_known("view", name):
        raise TraceError(f'--view "{name}": no such view; {nearest(name, registry.known_names("view"))}')
    view: View = registry.get("view", name)
    if output is not None and output not in view.outputs():
        advice = " or ".join(ADVICE[other].format(name=name) for other in view.outputs() if ADVICE[other])
        raise TraceError(f"--view {name} is not available as a {output}; {advice}")
    return view


def default_view(trace: Trace, site: str | None, output: Output) -> str:
    """Return the name of the view that suits a trace and a site (None: the alignment site) best."""
    for name in registry.known_names("view"):
        view = get_view(name)
        if view.suits is not None and output in view.outputs() and view.suits(trace, site):
            return name
    return DEFAULT

"""heedful: train, use, see and measure models that decide where to look.

import heedful

model = heedful.load("build/demo")                          # a folder, or a bundled model's name
model("my sister sees the small cat")
model.trace("my sister sees the small cat").matrix()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.record import Trace
    from heedful.tasks.face import Model, load

__all__ = ["Model", "Trace", "load"]


def __getattr__(name: str) -> Any:
    """What is heavy is imported when it is asked for."""
    if name == "Trace":
        from heedful.record import Trace

        return Trace
    if name in __all__:
        from heedful.tasks import face

        return getattr(face, name)
    raise AttributeError(f"module 'heedful' has no attribute '{name}'")

"""heedful: train, use, visualize and measure attention models.

import heedful

model = heedful.load("build/demo")                          # a folder, or the name of a bundled model
model("my sister sees the small cat")
model.trace("my sister sees the small cat").matrix()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.api import Model, load
    from heedful.registry import register
    from heedful.trace.schema import Trace

__all__ = ["Model", "Trace", "load", "register"]
MODULES = {"Model": "api", "Trace": "trace.schema", "load": "api", "register": "registry"}


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that `import heedful` does not import torch."""
    if name in MODULES:
        return getattr(import_module(f"heedful.{MODULES[name]}"), name)
    raise AttributeError(f"module 'heedful' has no attribute '{name}'")

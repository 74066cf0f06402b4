"""The public Python interface: load a model by its name or folder, or train one.

`heedful/__init__.py` imports from here when a name is first used.
"""

from heedful.api.loading import load
from heedful.tasks.api import Model

__all__ = ["Model", "load"]

"""Import packages that are extras; where one is missing, say which extra to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from heedful.errors import ModelError


def require(package: str, extra: str, purpose: str) -> Any:
    """Return a package, or raise ModelError with the command that installs it.

    >>> require("json", "json", "reading JSON").__name__
    'json'
    """
    try:
        return import_module(package)
    except ImportError as error:
        if error.name is not None and error.name.split(".")[0] != package.split(".")[0]:
            raise ModelError(f"{purpose}: {package} cannot be imported: {error}") from None
        raise ModelError(f"{purpose} needs {package}: pip install 'heedful[{extra}]'") from None

"""Names of models that are no folders of ours, by their prefix. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping

SOURCES: Mapping[str, tuple[str, str]] = {  # prefix -> the function that loads, and its extra; imported when it is used
    "hf:": ("heedful.integrations.transformers.loading:load_transformers", "transformers"),
    "hub:": ("heedful.integrations.hub:load_from_hub", "hub"),
}


def is_from_elsewhere(name: object) -> bool:
    """Return whether a name has the prefix of models that are no model folders of ours, such as `hf:`."""
    return str(name).startswith(tuple(SOURCES))

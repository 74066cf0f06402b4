"""A helper for values that are None in general, but not here."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def not_none(value: T | None) -> T:
    """Return a value that cannot be None by construction, which a type checker cannot know."""
    assert value is not None
    return value

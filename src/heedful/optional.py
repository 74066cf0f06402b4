"""A helper for values whose type allows None but which are never None at that place."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def not_none(value: T | None) -> T:
    """Return the value; for values that are never None, which the type checker cannot know."""
    assert value is not None
    return value

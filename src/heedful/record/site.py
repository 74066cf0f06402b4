"""A site: one place in a model where attention happens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

Kind = Literal["cross", "self", "pool", "history", "tape"]
Mass = Literal["one", "at_most_one", "free"]


class Site(NamedTuple):
    """Where in a model a look happens, how many heads it has, and what its weights sum to."""

    id: str
    kind: Kind
    heads: int
    mass: Mass


def without_alignment(name: str, sites: Sequence[str]) -> str:
    """Why nothing can be said of looks from a model's output to its input."""
    if not sites:
        return f"{name} has no attention: it never looks back at what it read"
    return f"{name} looks only while it reads, not when it answers; a trace shows that with --site {sites[0]}"

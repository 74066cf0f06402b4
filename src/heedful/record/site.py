"""A site: one place in a model where attention happens."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["cross", "self", "pool", "history", "tape"]
Mass = Literal["one", "at_most_one", "free"]


class Site(NamedTuple):
    """Where in a model a look happens, how many heads it has, and what its weights sum to."""

    id: str
    kind: Kind
    heads: int
    mass: Mass

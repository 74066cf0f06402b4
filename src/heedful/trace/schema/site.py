"""A site: one place in a model where attention is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from heedful.trace.schema.record import Record

SiteKind = Literal["cross", "self", "pool", "history", "tape"]
Mass = Literal["one", "at_most_one", "free"]
SideName = Literal["target", "source"]
MAX_HEADS = 1_000


class Site(NamedTuple):
    """Where a model computes attention: its name, kind, number of heads, and what a row of weights sums to."""

    id: str
    kind: SiteKind
    heads: int
    mass: Mass


class SiteRecord(Record):
    """The attention of one site. Arrays are given by their names in `tensors`.

    `weights` (query, head, key) is always there; with more detail also `scores` (query, head, key; before the
    normalizer), `query` (query, width), `values` (key, head, width), `context` (query, head, width), `keep`
    (key; may it be read?) and `extras` by name. With a single head the head axis may be missing.
    """

    site: str
    kind: SiteKind
    heads: Annotated[int, Field(ge=1, le=MAX_HEADS)]
    mass: Mass
    query_side: SideName = "target"
    key_side: SideName = "source"
    weights: str
    scores: str | None = None
    query: str | None = None
    values: str | None = None
    context: str | None = None
    keep: str | None = None
    keys_from: str | None = None  # the site whose contexts are the keys here: words, then sentences
    extras: dict[str, str] = Field(default_factory=dict)

    @classmethod
    def from_site(cls, site: Site, **fields: Any) -> SiteRecord:
        """Return the record of a model's site; `fields` are the remaining fields."""
        unknown = fields.keys() - cls.model_fields.keys()
        if unknown:
            raise TypeError(f"a site record has no {', '.join(sorted(unknown))}")
        return cls(site=site.id, kind=site.kind, heads=site.heads, mass=site.mass, **fields)


def no_alignment_message(model: str, sites: Sequence[str]) -> str:
    """Return the error for a model whose output has no attention over its input."""
    if not sites:
        return f"{model} has no attention over its input"
    return f"{model} has attention inside its encoder only, not from output to input; show that with --site {sites[0]}"

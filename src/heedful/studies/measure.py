"""`heedful measure`: where a model looks, how that agrees with gold, and whether it matters.

What is said of looks is where a model read from, never why it said what it said. What is particular to a task
is in a file of its own: how its items are read, how its looks are described, and a `Subject` for the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from heedful.errors import DataError, TraceError
from heedful.record import Links, graded, without_alignment
from heedful.studies.examine import TESTS, Asked, honesty
from heedful.studies.probe import Subject
from heedful.tasks.kind import FILES, Opened

__all__ = ["TESTS", "Asked", "Items", "items_of", "measure"]

WAYS = {
    "text": "measure_text",
    "caption": "measure_caption",
    "classify": "measure_label",
    "recommend": "measure_history",
    "read": "measure_read",
}  # by a task's file


class Way(Protocol):
    """What a task says of its looks."""

    unit: str  # what its items are

    def items(self, opened: Any, data: Sequence[str], split: str) -> list[Any]: ...
    def gold(self, path: Path, base: int) -> list[Links]: ...
    def looks(self, opened: Any, items: Sequence[Any], gold: Sequence[Links] | None) -> dict[str, Any]: ...
    def subject(self, opened: Any, items: Sequence[Any]) -> Subject: ...


def way_of(opened: Opened[Any, Any]) -> Way:
    found: Way = import_module(f"heedful.studies.{WAYS[FILES[opened.recipe.task.kind]]}").WAY
    return found


class Items(NamedTuple):
    """What is measured on, and the gold links of each item where they are known."""

    pairs: list[Any]
    gold: list[Links] | None


def items_of(
    opened: Opened[Any, Any], data: Sequence[str], split: str, gold: Path | None, base: int, limit: int = 0
) -> Items:
    """Items and gold from files, or from the recipe's own data; gold is also what a world knows itself."""
    way = way_of(opened)
    pairs = way.items(opened, data, split)
    known: list[Links] | None = None
    if gold is not None:
        known = way.gold(gold, base)
    elif pairs and all(getattr(pair, "links", None) is not None for pair in pairs):
        known = [graded(pair.links) for pair in pairs]
    if not limit:
        return Items(pairs, known)
    return Items(pairs[:limit], None if known is None else known[:limit])


def measure(
    opened: Opened[Any, Any],
    pairs: Sequence[Any],
    asked: Asked,
    gold: Sequence[Links] | None = None,
) -> dict[str, Any]:
    """Everything that was asked for, as plain numbers."""
    way = way_of(opened)
    if opened.model.alignment is None:
        raise TraceError(without_alignment(opened.name, [site.id for site in opened.model.sites]))
    if gold is not None and len(gold) != len(pairs):
        raise DataError(f"{len(pairs):,} pairs, but {len(gold):,} lines of gold links")
    found = {"model": opened.name, "sentences": len(pairs), "unit": way.unit}
    found |= way.looks(opened, pairs, gold)
    if asked.tests:
        found["tests"] = honesty(way.subject(opened, pairs), asked)
    return found

"""The published schema is the one that is written by."""

from __future__ import annotations

from pathlib import Path

from heedful.record import json_schema

PUBLISHED = Path(__file__).parents[2] / "docs" / "trace.schema.json"


def test_the_published_schema_is_todays() -> None:
    """Where this fails, the new one is what `heedful.record.json_schema()` gives."""
    assert PUBLISHED.read_text(encoding="utf-8") == json_schema()

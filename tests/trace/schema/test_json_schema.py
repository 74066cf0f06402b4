"""The published JSON Schema is that of the code."""

from __future__ import annotations

from pathlib import Path

from heedful.trace.schema import json_schema

PUBLISHED = Path(__file__).parents[3] / "docs" / "trace.schema.json"


def test_the_published_schema_is_up_to_date() -> None:
    """If this fails, write the output of `heedful.trace.schema.json_schema()` to docs/trace.schema.json."""
    assert PUBLISHED.read_text(encoding="utf-8") == json_schema()

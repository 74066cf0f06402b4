"""The lessons, and their links into the studio."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
LESSONS = sorted(DOCS.glob("lessons/[0-9]*.md"))
STUDIO_LINK = re.compile(r"http://127\.0\.0\.1:8765/open#/[^\s)]+")


def studio_links() -> list[str]:
    pages = [*LESSONS, *sorted(DOCS.glob("teaching/*.md"))]
    return sorted({link for page in pages for link in STUDIO_LINK.findall(page.read_text(encoding="utf-8"))})

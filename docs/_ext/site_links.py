"""Links of pages to files outside docs/ lead to the repository; links inside docs/ stay links of the site."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

REPOSITORY = "https://github.com/heedful/heedful"
LINK = re.compile(r"\]\((?P<path>(?:\.\./)+[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
OWN_PAGES = {"DESIGN.md": "design", "CHANGELOG.md": "changelog", "CONTRIBUTING.md": "contributing"}


def rewrite_links(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace relative links that leave docs/ by links to the repository; a file that does not exist is an error."""
    if app.config.include_patterns != ["**"]:  # a translation
        source[0] = source[0].partition("\n% english only\n")[0]
    page = Path(app.srcdir, docname).parent
    root = Path(app.srcdir).parent

    def address(match: re.Match[str]) -> str:
        path = (page / match["path"]).resolve()
        if path.is_relative_to(app.srcdir):
            return match[0]
        if not path.exists():
            raise ExtensionError(f"{docname}: {match['path']}: no such file")
        name = path.relative_to(root).as_posix()
        if name in OWN_PAGES:
            up = "../" * docname.count("/")
            return f"]({up}project/{OWN_PAGES[name]}.md)"
        return f"]({REPOSITORY}/{'tree' if path.is_dir() else 'blob'}/main/{name}{match['anchor'] or ''})"

    source[0] = LINK.sub(address, source[0])


def copy_root_pages(app: Sphinx) -> None:
    """Write the pages of the repository's root into project/, with links as that folder needs them."""
    root = Path(app.srcdir).parent
    for name, page in OWN_PAGES.items():
        text = (root / name).read_text(encoding="utf-8")
        text = re.sub(r"\]\((?![a-z]+:|#)([^)\s]+)\)", r"](../../\1)", text)
        text = text.replace("](../../docs/", "](../")
        path = Path(app.srcdir, "project", f"{page}.md")
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def link_to_english(app: Sphinx, env: Any, node: Any, contnode: Any) -> Any:
    """Link from a translated page to a page that exists in English only."""
    if app.config.language == "en" or node.get("reftype") != "doc":
        return None
    folder = posixpath.dirname(f"/{node['refdoc']}")
    name = posixpath.normpath(posixpath.join(folder, node["reftarget"])).lstrip("/")
    item = env.intersphinx_inventory.get("std:doc", {}).get(name)
    if item is None:
        return None
    content = contnode if node["refexplicit"] else nodes.inline(text=item.display_name)
    address = "../" * node["refdoc"].count("/") + item.uri
    return nodes.reference("", "", content, internal=False, refuri=address, hreflang="en")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", copy_root_pages)
    app.connect("missing-reference", link_to_english)
    app.connect("source-read", rewrite_links)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

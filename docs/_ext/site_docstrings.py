"""Docstrings, which are Markdown, for autodoc, which expects reStructuredText; links of the names in signatures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sphinx.application import Sphinx


def markdown_to_rst(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Turn a docstring's Markdown into reStructuredText: code, tables and lists."""
    out: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        if line.lstrip().startswith("|"):
            end = index
            while end < len(lines) and lines[end].lstrip().startswith("|"):
                end += 1
            out += ["", *table_to_rst(lines[index:end]), ""]
            index = end
            continue
        previous = lines[index - 1] if index else ""
        starts_block = line.startswith("    ") and not line.lstrip().startswith((">>>", "...")) and previous == ""
        if starts_block and out and not any(one.startswith(("- ", ">>>")) for one in paragraph_before(lines, index)):
            out += ["::", ""]
        if line.startswith("- ") and previous.strip() and not previous.startswith(("- ", "  ")):
            out.append("")
        out.append(line if line.startswith("    ") or ">>>" in line else inline_to_rst(line))
        index += 1
    lines[:] = out


def paragraph_before(lines: list[str], index: int) -> list[str]:
    """Return the paragraph that ends above a blank line."""
    end = index - 1
    start = end
    while start > 0 and lines[start - 1].strip():
        start -= 1
    return lines[start:end]


def inline_to_rst(line: str) -> str:
    """Double the backquotes of code and escape what reStructuredText would read as markup."""
    parts = re.split(r"(?<!`)(`[^`]+`)(?!`)", line)
    return "".join(
        f"`{part}`".replace(". ", ".\u2060 ")  # autosummary takes ". " for the end of the sentence
        if part.startswith("`")
        else re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", part.replace("*", "\\*"))
        for part in parts
    )


def table_to_rst(lines: list[str]) -> Iterator[str]:
    """Return a Markdown table as a list-table."""
    rows = [[part.strip() for part in line.strip().strip("|").split("|")] for line in lines]
    rows = [row for row in rows if not all(set(part) <= set("-: ") for part in row)]
    yield ".. list-table::"
    yield "   :header-rows: 1"
    yield ""
    for row in rows:
        for number, part in enumerate(row):
            yield f"   {'* -' if number == 0 else '  -'} {inline_to_rst(part)}"


# --- names in signatures


def resolve_name(app: Sphinx, env: Any, node: Any, contnode: Any) -> Any:
    """Link a name to the place where it is documented, show one that only exists as text, and leave others to nitpick.

    A signature names `heedful.attention.types.Memory`, which is documented as `heedful.attention.Memory`.
    """
    from sphinx.util.nodes import make_refnode

    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not target.startswith("heedful."):
        return None
    name = target.rpartition(".")[2]
    objects = env.get_domain("py").objects
    places = [one for one in objects if one.rpartition(".")[2] == name and not objects[one].aliased]
    if len(places) == 1:
        place = objects[places[0]]
        return make_refnode(app.builder, node["refdoc"], place.docname, place.node_id, contnode, places[0])
    return contnode if exists(target) else None


def exists(name: str) -> bool:
    """Return whether a dotted name can be imported."""
    import importlib

    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            if not hasattr(thing, part):
                return False
            thing = getattr(thing, part)
        return True
    return False


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("missing-reference", resolve_name)
    app.connect("autodoc-process-docstring", markdown_to_rst)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

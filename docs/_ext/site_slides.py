"""Slides on a page: the parts of `{slides}`, of which a script shows one at a time; without it, all of them."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Slides(SphinxDirective):
    """Markdown, in which a line `---` ends a slide."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return one container per slide in a container of all."""
        deck = nodes.container(classes=["slides"])
        start = 0
        ends = [n for n, line in enumerate(self.content) if line.strip() == "---"]
        for end in [*ends, len(self.content)]:
            part = self.content[start:end]
            slide = nodes.container(classes=["slide"])
            lines = [f"**{line[3:]}**" if line.startswith("## ") else line for line in part]
            for n, line in enumerate(part):
                if line.startswith("## "):
                    lines[n] = f"{line[3:]}"
                    lines.insert(n + 1, "")
                    break
            text = StringList(lines, source=self.get_source_info()[0])
            self.state.nested_parse(text, self.content_offset + start, slide)
            if slide.children and isinstance(slide[0], nodes.paragraph):
                slide[0]["classes"].append("slide-title")
            deck += slide
            start = end + 1
        return [deck]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("slides", Slides)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

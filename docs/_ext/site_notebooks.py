"""Lessons as notebooks to download, and the line of links under a lesson's title."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

NOTEBOOKS = "_notebooks"
WORDS = {
    "en": ("Download this lesson as a notebook", "minutes to read", "seconds to run on two cores"),
    "vi": ("Tải bài này về dưới dạng notebook", "phút đọc", "giây chạy trên hai nhân"),
    "zh_CN": ("下载本课的 notebook", "分钟读完", "秒跑完（双核）"),
}

FIGURE = {"en": "Figure drawn by the code above", "vi": "Hình do đoạn mã trên vẽ ra", "zh_CN": "上面的代码画出的图"}


class LessonLinks(SphinxDirective):
    """`{lesson}` MINUTES SECONDS: how long a lesson takes, and its notebook."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        """Return one paragraph of links."""
        download, read, run = WORDS[self.config.language]
        minutes, seconds = self.arguments
        up = "../" * self.env.docname.count("/")
        html = (
            f'<p class="lesson-links"><span>{minutes} {read}</span><span>{seconds} {run}</span>'
            f'<a href="{up}{NOTEBOOKS}/{self.env.docname}.ipynb" download>{download}</a></p>'
        )
        return [nodes.raw("", html, format="html")]


def write_notebooks(app: Sphinx, exception: Exception | None) -> None:
    """Write every lesson as .ipynb, without outputs, beside the pages."""
    if exception is not None or app.builder.name != "html":
        return
    from myst_nb.core.read import read_myst_markdown_notebook

    for docname in sorted(app.env.found_docs):
        path = Path(app.env.doc2path(docname))
        if not docname.startswith("lessons/") or docname == "lessons/index" or path.suffix != ".md":
            continue
        text = path.read_text(encoding="utf-8")
        notebook = read_myst_markdown_notebook(text)
        messages = read_messages(Path(app.srcdir, "locale", app.config.language, "LC_MESSAGES", f"{docname}.po"))
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = as_plain_markdown(translate(cell.source, messages))
            elif {"hide-cell", "remove-input"} & set(cell.metadata.get("tags", ())):
                cell.metadata["jupyter"] = {"source_hidden": True}  # answers, and drawings that teach nothing
        out = Path(app.outdir, NOTEBOOKS, f"{docname}.ipynb")
        out.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(nbformat.from_dict(notebook), out)


def read_messages(path: Path) -> dict[str, str]:
    """Return the translations of a page, the longest texts first; none for English."""
    from babel.messages.pofile import read_po

    if not path.exists():
        return {}
    with path.open("rb") as file:
        messages = {str(one.id): str(one.string) for one in read_po(file) if one.id and one.string}
    return dict(sorted(messages.items(), key=lambda item: -len(item[0])))


def translate(text: str, messages: dict[str, str]) -> str:
    """Replace the paragraphs, headings, items and cells of tables in Markdown by their translations."""
    for source, target in messages.items():
        words = r"\s+".join(re.escape(word) for word in source.split())
        text = re.sub(
            rf"(?m)(^(?:#+ |- |\d+\. )?|\| ){words}(?=[ \t]*$| \|)", lambda match, t=target: match[1] + t, text
        )
    return text


def as_plain_markdown(text: str) -> str:
    """Return a cell's text without the roles and directives that only the site understands."""
    text = re.sub(r"```\{lesson\}.*?\n```\n?", "", text, flags=re.S)
    text = re.sub(r"^\+\+\+.*\n?", "", text, flags=re.M)
    text = re.sub(r"\{(?:doc|py:\w+)\}`([^`<]+) <[^`]*>`", r"\1", text)
    text = re.sub(r"\{(?:doc|py:\w+)\}`~?([^`]*)`", r"`\1`", text)
    return re.sub(r"^```\{(?:tip|note|important|admonition)\}.*\n(.*?)^```", r"\1", text, flags=re.M | re.S)


def name_figures(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Give the figures of notebooks a text for those who do not see them, with the title of their section."""
    for image in doctree.findall(nodes.image):
        sections, parent = [], image.parent
        while parent is not None:
            sections += [parent[0].astext()] if isinstance(parent, nodes.section) else []
            parent = parent.parent
        if "alt" not in image and docname.startswith("lessons/"):
            image["alt"] = f"{sections[0]}: {FIGURE[app.config.language]}" if sections else FIGURE[app.config.language]


def add_context(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Tell the language links where the root of all languages is, and which pages exist in each."""
    depth = pagename.count("/") + (app.config.language != "en")
    context["site_root"] = "../" * depth
    context["site_translated"] = [pagename] if is_translated(app, pagename) else []


def is_translated(app: Sphinx, pagename: str) -> bool:
    """Return whether a page exists in every language."""
    return any(fnmatch(f"{pagename}.md", pattern) for pattern in app.config.site_translated_pages)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_config_value("site_translated_pages", [], "html")
    app.add_directive("lesson", LessonLinks)
    app.connect("doctree-resolved", name_figures)
    app.connect("html-page-context", add_context)
    app.connect("build-finished", write_notebooks)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

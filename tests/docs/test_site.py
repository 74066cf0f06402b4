"""Every page of the built site, opened in Chromium: no error, no outside request, no broken link, nothing axe finds."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest
from playwright.sync_api import Browser, Page

from chromium import chromium

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
AXE = ROOT / "studio" / "node_modules" / "axe-core" / "axe.min.js"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)
LESSONS = [page for page in PAGES if "lessons/" in page and not page.endswith("index.html")]
REPOSITORY = "https://github.com/heedful/heedful"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(not PAGES and not os.environ.get("HEEDFUL_REQUIRE_SITE"), reason="`make docs` builds the site"),
]


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that says nothing."""

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


class Visit:
    """One page, what it requested, and what went wrong."""

    def __init__(self, browser: Browser, address: str, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page: Page = self.context.new_page()
        self.problems: list[str] = []
        self.page.on("console", lambda m: self.problems.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("requestfailed", lambda request: self.problems.append(f"failed: {request.url}"))
        self.page.on("response", lambda r: self.problems.append(f"{r.status}: {r.url}") if r.status >= 400 else None)
        self.page.on("request", lambda r: None if is_local(r.url, address) else self.problems.append(f"asked: {r.url}"))

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


def is_local(url: str, address: str) -> bool:
    return url.startswith((address, "data:", "blob:", "about:"))


def test_the_site_was_built() -> None:
    assert len(LESSONS) == 39, "thirteen lessons in three languages"
    for language in ("", "vi/", "zh_CN/"):
        for page in ("index", "start/index", "glossary", "teaching/sheet", "search"):
            assert f"{language}{page}.html" in PAGES


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_without_errors_and_its_links_lead_somewhere(browser: Browser, address: str, page: str) -> None:
    with Visit(browser, address) as visit:
        visit.page.goto(address + page, wait_until="load")
        links = visit.page.eval_on_selector_all("a[href]", "all => all.map(a => a.getAttribute('href'))")
        assert visit.page.title()
        assert visit.problems == []
    assert [link for link in set(links) if not leads_somewhere(page, link)] == []


def leads_somewhere(page: str, link: str) -> bool:
    """Return whether a link leads to a file of the site, to an anchor in it, or to a file of the repository."""
    if link.startswith(REPOSITORY):
        parts = urlsplit(link).path.removeprefix("/heedful/heedful").strip("/").split("/", 2)
        return len(parts) < 3 or parts[1] != "main" or (ROOT / parts[2]).exists()
    if "://" in link:
        return True  # of the outside world, which a test does not ask
    target, anchor = urldefrag(urljoin(f"/{page}", link))
    path = SITE / unquote(target.partition("?")[0]).lstrip("/")
    path = path / "index.html" if path.is_dir() else path
    if not path.is_file():
        return False
    return not anchor or path.suffix != ".html" or f'id="{unquote(anchor)}"' in read(path)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", LESSONS)
def test_the_page_in_a_lesson_works(browser: Browser, address: str, page: str) -> None:
    """The frame draws its views, and the step buttons of the Walk move it."""
    with Visit(browser, address) as visit:
        visit.page.goto(address + page, wait_until="load")
        handle = visit.page.wait_for_selector("iframe")
        frame = handle.content_frame() if handle else None
        assert frame is not None
        frame.wait_for_selector("#page *")
        assert frame.locator("button, a, [role=tab]").count() > 3
        assert len(frame.locator("body").inner_text()) > 100
        assert visit.problems == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_accessible_in_light_and_in_dark_colors(browser: Browser, address: str, page: str) -> None:
    with Visit(browser, address) as visit:
        visit.page.goto(address + page, wait_until="load")
        visit.page.add_script_tag(path=AXE)
        for scheme, rules in (("light", ["wcag2a", "wcag2aa"]), ("dark", ["color-contrast"])):
            visit.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            options = {"runOnly": rules, "iframes": False}
            found = visit.page.evaluate("options => axe.run('article', options)", options)
            problems = [(scheme, one["id"], one["nodes"][0]["html"][:120]) for one in found["violations"]]
            assert problems == []


@pytest.mark.parametrize("page", LESSONS)
def test_a_lesson_fits_a_phone(browser: Browser, address: str, page: str) -> None:
    with Visit(browser, address, viewport={"width": 390, "height": 844}) as visit:
        visit.page.goto(address + page, wait_until="load")
        width = visit.page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390


@pytest.mark.parametrize(
    ("search", "lesson"),
    [
        ("search.html?q=reinforce", "06-global-local-soft-hard"),
        ("search.html?q=induction+heads", "13-your-own-model"),
        ("vi/search.html?q=nút+cổ+chai", "01-one-vector"),
        ("zh_CN/search.html?q=掩码", "05-mask-and-scale"),
        ("zh_CN/search.html?q=平方根", "05-mask-and-scale"),
    ],
)
def test_search_finds_a_lesson(browser: Browser, address: str, search: str, lesson: str) -> None:
    with Visit(browser, address) as visit:
        visit.page.goto(address + search, wait_until="load")
        visit.page.wait_for_selector("#search-results li a")
        links = visit.page.eval_on_selector_all("#search-results li a", "all => all.map(a => a.href)")
        assert any(lesson in link for link in links)
        assert visit.problems == []


def test_code_can_be_copied_and_the_colors_changed(browser: Browser, address: str) -> None:
    with Visit(browser, address, permissions=["clipboard-read", "clipboard-write"]) as visit:
        visit.page.goto(f"{address}lessons/02-five-steps.html", wait_until="load")
        assert visit.page.locator("button.copybtn").count() >= visit.page.locator("div.cell_input").count() > 5
        visit.page.locator("div.cell_input").first.hover()
        visit.page.locator("button.copybtn").first.click()
        assert visit.page.evaluate("navigator.clipboard.readText()").startswith("import heedful")
        before = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        visit.page.locator(".theme-toggle").last.click()
        visit.page.locator(".theme-toggle").last.click()
        assert visit.page.evaluate("document.body.dataset.theme") in ("light", "dark")
        seen = {before}
        for _ in range(3):
            visit.page.locator(".theme-toggle").last.click()
            seen.add(visit.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert len(seen) == 2
        assert visit.problems == []


@pytest.mark.parametrize("page", [page for page in LESSONS if page.startswith("lessons/")])
def test_every_figure_of_a_lesson_is_shown(page: str) -> None:
    """A figure that a cell draws is below the cell, not only the first one of a lesson."""
    source = read(ROOT / "docs" / page.replace(".html", ".md"))
    cells = re.findall(r"(?ms)^```\{code-cell\} ipython3\n(.*?)^```$", source)
    figures = [cell for cell in cells if re.search(r"\bplot\(|plt\.subplots\(", cell)]
    assert read(SITE / page).count("<img alt=") >= len(figures) > 0


@pytest.mark.parametrize("page", [page for page in LESSONS if page.startswith(("vi/", "zh_CN/"))])
def test_a_translated_lesson_has_a_translated_title(page: str) -> None:
    """A title such as "1. ..." must not be read as a list, for then Sphinx drops the translation."""
    titles = [re.search(r"<h1>(.*?)<", read(SITE / one)) for one in (page, page.partition("/")[2])]
    translated, english = (title[1] for title in titles if title)
    assert translated != english
    assert translated.partition(".")[0] == english.partition(".")[0]


@pytest.mark.parametrize("page", LESSONS)
def test_a_lesson_can_be_downloaded_as_a_notebook(page: str) -> None:
    import nbformat

    name = page.removesuffix(".html")
    language, _, rest = name.rpartition("lessons/")
    notebook = nbformat.read(SITE / language / "_notebooks" / f"lessons/{rest}.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    text = "\n".join(cell.source for cell in notebook.cells)
    assert "import heedful" in text
    assert "{doc}" not in text
    assert "```{" not in text

"""The page in Chromium: every request is refused, every complaint is kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, Route, sync_playwright

from heedful.record import Trace
from heedful.view.page import BUILT, write_page

HERE = Path(__file__).parent
REQUIRED = os.environ.get("HEEDFUL_REQUIRE_BROWSER") == "1"
Opener = Callable[..., "Shown"]


SERIALISED = """() => {
  const told = node => {
    if (node.nodeType === Node.TEXT_NODE) return node.nodeValue;
    const attributes = [...node.attributes].map(one => `${one.name}=${one.value}`).sort();
    return `<${node.nodeName} ${attributes.join(" ")}>${[...node.childNodes].map(told).join("")}</>`;
  };
  return told(document.getElementById("page"));
}"""


class Shown:
    """An opened page, what it asked the network for, and what it complained about."""

    def __init__(self, page: Page, file: Path) -> None:
        self.page, self.file = page, file
        self.asked: list[str] = []
        self.complaints: list[str] = []
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        page.route("**/*", self._refuse)

    def _refuse(self, route: Route) -> None:
        if route.request.url.partition("#")[0] == self.file.as_uri():
            route.continue_()
        else:
            self.asked.append(route.request.url)
            route.abort()

    def go(self, link: str) -> None:
        """To another link; what was computed stays."""
        self.page.evaluate("link => { location.hash = link }", link)
        self.page.wait_for_function("link => location.hash === link", arg=link)

    def load(self, link: str = "") -> None:
        self.page.goto(self.file.as_uri() + link)
        self.ready()

    def ready(self) -> None:
        self.page.wait_for_selector("#recomputed:not([data-state=busy])")

    def dom(self) -> str:
        """All elements, attributes and texts, whatever order the attributes were set in."""
        found: str = self.page.evaluate(SERIALISED)
        return found

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def numbers(self, selector: str) -> list[float]:
        """The whole values behind what is shown."""
        found = self.page.eval_on_selector_all(selector, "all => all.map(one => Number(one.dataset.v))")
        return [float(value) for value in found]

    def texts(self, selector: str) -> list[str]:
        return self.page.locator(selector).all_text_contents()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not (BUILT / "page.js").exists():
        _cannot("the page is not built: install heedful again")
    with sync_playwright() as playwright:
        try:
            found = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"]
            )
        except Error as error:
            _cannot(f"no Chromium here: {error.message}")
        yield found
        found.close()


def _cannot(why: str) -> None:
    if REQUIRED:
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Opener]:
    """Write a trace's page and open it at a link."""
    contexts = []

    def opened(trace: Trace, link: str = "", **options: Any) -> Shown:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
        contexts.append(context)
        file = tmp_path / f"page-{len(contexts)}.html"
        write_page(trace, file)
        shown = Shown(context.new_page(), file)
        shown.load(link)
        return shown

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def world() -> Trace:
    """A sentence of the phrase world, with what-ifs; gold links are known."""
    return Trace.load(HERE / "world.json")

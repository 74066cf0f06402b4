"""The page in Chromium: every request is refused and recorded, every error is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route

from chromium import chromium, unavailable
from heedful.trace.schema import Trace
from heedful.viz.page import BUILT, write_page

HERE = Path(__file__).parent
Opener = Callable[..., "OpenPage"]


SERIALIZE = """() => {
  const serialize = node => {
    if (node.nodeType === Node.TEXT_NODE) return node.nodeValue;
    const attributes = [...node.attributes].map(one => `${one.name}=${one.value}`).sort();
    return `<${node.nodeName} ${attributes.join(" ")}>${[...node.childNodes].map(serialize).join("")}</>`;
  };
  return serialize(document.getElementById("page"));
}"""


class OpenPage:
    """An open page, the requests it made, and its errors."""

    def __init__(self, page: Page, file: Path) -> None:
        self.page, self.file = page, file
        self.requests: list[str] = []
        self.errors: list[str] = []
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(dialog.message))
        page.route("**/*", self._refuse)

    def _refuse(self, route: Route) -> None:
        if route.request.url.partition("#")[0] == self.file.as_uri():
            route.continue_()
        else:
            self.requests.append(route.request.url)
            route.abort()

    def go(self, link: str) -> None:
        """Go to another link without loading the page again."""
        self.page.evaluate("link => { location.hash = link }", link)
        self.page.wait_for_function("link => location.hash === link", arg=link)

    def load(self, link: str = "") -> None:
        self.page.goto(self.file.as_uri() + link)
        self.wait_until_recomputed()

    def wait_until_recomputed(self) -> None:
        self.page.wait_for_selector("#recomputed:not([data-state=busy])")

    def dom(self) -> str:
        """Return all elements, attributes and texts, in an order that does not depend on history."""
        serialized: str = self.page.evaluate(SERIALIZE)
        return serialized

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def numbers(self, selector: str) -> list[float]:
        """Return the unrounded values of the elements."""
        values = self.page.eval_on_selector_all(selector, "all => all.map(one => Number(one.dataset.v))")
        return [float(value) for value in values]

    def texts(self, selector: str) -> list[str]:
        return self.page.locator(selector).all_text_contents()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not (BUILT / "page.js").exists():
        unavailable("the page is not built: install heedful again")
    with chromium() as browser:
        yield browser


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Opener]:
    """Return a function that writes a trace's page and opens it at a link."""
    contexts = []

    def open_page(trace: Trace, link: str = "", **options: Any) -> OpenPage:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
        contexts.append(context)
        file = tmp_path / f"page-{len(contexts)}.html"
        write_page(trace, file)
        page = OpenPage(context.new_page(), file)
        page.load(link)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def world() -> Trace:
    """A sentence of the phrase world with counterfactuals."""
    return Trace.load(HERE / "world.json")

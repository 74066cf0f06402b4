"""`heedful studio` in a process of its own, with the bundled models, open in Chromium."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Request

from chromium import chromium
from command_line import HEEDFUL

WAIT = 60_000  # milliseconds; a loaded machine is slow


class Studio:
    """An open studio: its page, requests beyond the server, and errors."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.context, self.address = context, address
        self.errors: list[str] = []
        self.elsewhere: list[str] = []
        self.page = self._open()

    def _open(self) -> Page:
        page = self.context.new_page()
        page.set_default_timeout(WAIT)
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._note)
        return page

    def _note(self, request: Request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.elsewhere.append(request.url)

    def go(self, link: str = "#/write?model=en-fr") -> None:
        """Open a link in a new page, so that nothing of the page before is left."""
        self.page.close()
        self.page = self._open()
        self.page.goto(f"{self.address}/{link}")
        self.page.wait_for_selector("[data-tab]")

    def wait(self) -> None:
        """Wait until the model has answered."""
        self.page.wait_for_timeout(100)  # the pause after the last key
        self.page.wait_for_selector("#activity[data-state=idle]", state="attached")

    def show(self, view: str, selector: str) -> None:
        self.page.click(f"[data-tab={view}]")
        self.page.wait_for_selector(selector)
        self.wait()

    def write(self, text: str) -> None:
        """Type a text and wait for its output."""
        self.page.fill("#input", text)
        self.page.wait_for_selector(f'#output[data-for="{text}"]')

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Ask the server as the page does, with its cookie."""
        response = self.context.request.post(self.address + path, data=body, timeout=WAIT)
        assert response.ok, response.text()
        return response.json()

    def text(self, selector: str) -> str:
        return self.page.inner_text(selector)

    def numbers(self, selector: str) -> list[float]:
        """Return the unrounded values of the elements."""
        values = self.page.eval_on_selector_all(selector, "all => all.map(one => Number(one.dataset.v))")
        return [float(value) for value in values]


@contextmanager
def start_studio(log: Path, *options: str) -> Iterator[str]:
    """Start a studio; what it says goes into a file. Yield its address."""
    command = [str(HEEDFUL), "studio", "--port", "0", "--no-browser", *options]
    with log.open("w") as output, subprocess.Popen(command, stderr=output) as process:
        address = ""
        while not address:
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
            address = next((line.split()[1] for line in log.read_text().splitlines() if line[:8] == "studio: "), "")
        yield address
        process.terminate()


@pytest.fixture(scope="session")
def studio_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with start_studio(tmp_path_factory.mktemp("studio") / "log") as address:
        yield address


@pytest.fixture(scope="module")
def session(studio_address: str) -> Iterator[Studio]:
    with chromium() as browser:
        context = browser.new_context(reduced_motion="reduce", accept_downloads=True)
        studio = Studio(context, studio_address.partition("/session")[0])
        studio.page.goto(studio_address)
        yield studio


@pytest.fixture
def studio(session: Studio) -> Iterator[Studio]:
    """The studio; no test may leave errors or requests beyond the server."""
    session.errors.clear()
    yield session
    assert session.errors == []
    assert session.elsewhere == []

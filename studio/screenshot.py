"""Draws docs/walk.png: the Walk of a sentence that the bundled model translates.

python studio/screenshot.py
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import heedful
from heedful.viz.page import page_link, write_page

ROOT = Path(__file__).parent.parent
SENTENCE = "The black cat sleeps on the old chair."
TICK = 14  # the end of the third word
PICTURE = ROOT / "docs" / "walk.png"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "walk.html"
        write_page(heedful.load("en-fr").trace(SENTENCE), file)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        page.goto(f"{file.as_uri()}{page_link()}&tick={TICK}")
        page.wait_for_selector("#recomputed[data-state=good]")
        page.screenshot(path=PICTURE, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()

"""Draws docs/walk.png: the Walk of a sentence of the phrase world.

python studio/screenshot.py
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from heedful.trace.schema import Trace
from heedful.viz.page import page_link, write_page

ROOT = Path(__file__).parent.parent
TRACE = ROOT / "tests" / "viz" / "world.json"
PICTURE = ROOT / "docs" / "walk.png"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "walk.html"
        write_page(Trace.load(TRACE), file)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        page.goto(f"{file.as_uri()}{page_link()}&tick=34")
        page.wait_for_selector("#recomputed[data-state=good]")
        page.screenshot(path=PICTURE, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()

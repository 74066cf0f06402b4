"""Draws docs/walk.png and docs/studio.png: the page of a trace, and the studio, with the bundled translator.

python studio/screenshot.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

import heedful
from heedful.viz.page import page_link, write_page

ROOT = Path(__file__).parent.parent
SENTENCE = "The black cat sleeps on the old chair."
TICK = 14  # the end of the third word
WALK, STUDIO = ROOT / "docs" / "walk.png", ROOT / "docs" / "studio.png"


def draw_walk(browser: Browser) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "walk.html"
        write_page(heedful.load("en-fr").trace(SENTENCE), file)
        page = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        page.goto(f"{file.as_uri()}{page_link()}&tick={TICK}")
        page.wait_for_selector("#recomputed[data-state=good]")
        page.screenshot(path=WALK, full_page=True)


def draw_studio(browser: Browser) -> None:
    command = [sys.executable, "-m", "heedful", "studio", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = next(line.split()[1] for line in process.stderr if line.startswith("studio: "))
        page = browser.new_page(viewport={"width": 1280, "height": 940}, reduced_motion="reduce")
        page.set_default_timeout(120_000)
        page.goto(address)
        page.wait_for_selector(f'#output[data-for="{SENTENCE}"]')  # the first example
        page.click("#to-what-if")
        page.click("#surprise")
        page.wait_for_selector("#verdict[data-changed=true]")
        page.click("#guide-close")
        page.evaluate("scrollTo(0, 0)")
        page.wait_for_selector("#activity[data-state=idle]", state="attached")
        page.screenshot(path=STUDIO)
        process.terminate()


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        draw_studio(browser)
        if "--studio" not in sys.argv:
            draw_walk(browser)
        browser.close()


if __name__ == "__main__":
    main()

"""Seconds until the page of a model with 12 layers and 12 heads is drawn and recomputed, on 40 tokens; and its size.

python benchmarks/page_opening.py
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from pathlib import Path

import torch
from playwright.sync_api import Browser, sync_playwright

from heedful.trace.schema import Trace
from heedful.viz.page import write_page

LAYERS, HEADS, TOKENS, ROUNDS = 12, 12, 40, 5
DONE = "#recomputed:not([data-state=busy])"


def weights() -> list[torch.Tensor]:
    """Return random weights of all layers."""
    return [torch.randn(1, HEADS, TOKENS, TOKENS).softmax(-1) for _ in range(LAYERS)]


def seconds(browser: Browser, file: Path) -> float:
    """Return the seconds from the click to the drawn page."""
    page = browser.new_page()
    start = time.perf_counter()
    page.goto(file.as_uri())
    page.wait_for_selector(DONE)
    taken = time.perf_counter() - start
    page.close()
    return taken


def main() -> None:
    words = [f"word{i}" for i in range(TOKENS)]
    encoder = Trace.from_attentions(weights(), words)
    both = Trace.from_attentions(
        weights(), words, cross_attentions=weights(), decoder_attentions=weights(), target_tokens=words
    )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, trace in (("encoder", encoder), ("encoder-decoder", both)):
            file = Path(folder) / f"{name}.html"
            write_page(trace, file)
            seconds(browser, file)
            times = [seconds(browser, file) for _ in range(ROUNDS)]
            size = file.stat().st_size / 1e6
            spread = f"{min(times):.2f} to {max(times):.2f}"
            print(f"{name:<16}{size:5.2f} MB {statistics.median(times):6.2f} s ({spread})")
        browser.close()


if __name__ == "__main__":
    main()

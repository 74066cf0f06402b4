"""How long the studio takes from the last key to the output with its alignment, in Chromium.

    python benchmarks/studio.py [--sentences 50] [--markdown benchmarks/studio.md]

Each sentence is typed into an open studio with the bundled translator, key by key; the time runs from the last key to
the first frame that shows the output of this sentence and its lines. The bar: a median under 300 ms on two cores.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

BAR = 300  # milliseconds, of the median
SUBJECTS = ("The cat", "My sister", "The old man", "A young woman", "Our teacher")
REST = (
    "sleeps on the chair.",
    "is reading a book.",
    "wants to buy a new car.",
    "has never seen the sea.",
    "lives in a small house near the river.",
    "asked me where the station was.",
    "will come back tomorrow.",
    "does not like cold water.",
    "gave the children some bread.",
    "is waiting for the train in the rain.",
)
SENTENCES = [f"{subject} {rest}" for rest in REST for subject in SUBJECTS]
MEASURE = """
sentence => new Promise(resolve => {
  const input = document.querySelector("#input");
  const set = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set;
  let last = 0;
  for (let n = 1; n <= sentence.length; n++) {
    last = performance.now();
    set.call(input, sentence.slice(0, n));
    input.dispatchEvent(new InputEvent("input", { bubbles: true }));
  }
  const look = () => {
    const shown = document.querySelector("#output")?.dataset.for === sentence;
    if (shown && document.querySelector(".ribbons path") !== null) resolve(performance.now() - last);
    else requestAnimationFrame(look);
  };
  look();
})
"""


def measure(page: Page, sentences: list[str]) -> list[float]:
    """Return the milliseconds of each sentence."""
    times = []
    for sentence in sentences:
        times.append(float(page.evaluate(MEASURE, sentence)))
        page.wait_for_timeout(100)
    return times


def run(sentences: list[str]) -> list[float]:
    """Start a studio and a browser, and measure."""
    command = [sys.executable, "-m", "heedful", "studio", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server, sync_playwright() as playwright:
        assert server.stderr is not None
        address = next(line.split()[1] for line in server.stderr if line.startswith("studio: "))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(120_000)
        page.goto(address)
        page.wait_for_selector("#output[data-for]")  # the model is in memory
        times = measure(page, [*sentences[:3], *sentences])[3:]
        browser.close()
        server.terminate()
    return times


def report(times: list[float]) -> str:
    """Return the result as Markdown."""
    ordered, processors = sorted(times), len(os.sched_getaffinity(0))
    slow = ordered[int(0.9 * (len(ordered) - 1))]
    return (
        f"| sentences | median | 90 % within | slowest | machine |\n|---|---|---|---|---|\n"
        f"| {len(times)} | {statistics.median(times):.0f} ms | {slow:.0f} ms | {ordered[-1]:.0f} ms |"
        f" {processors} processors, load average {os.getloadavg()[0]:.1f} |\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=len(SENTENCES))
    parser.add_argument("--markdown", type=Path, help="write the result to this file")
    options = parser.parse_args()
    times = run(SENTENCES[: options.sentences])
    text = report(times)
    print(text, end="")
    if options.markdown is not None:
        options.markdown.write_text(
            f"# From the last key to the output\n\n{text}\n`python benchmarks/studio.py`\n", "utf-8"
        )
    return 0 if statistics.median(times) < BAR else 1


if __name__ == "__main__":
    sys.exit(main())

"""How our cost grows: time per sentence against source length, sentences at a time, and vocabulary.

    python benchmarks/speed/growth.py            # minutes; writes growth.md and growth.png to benchmarks/
    python benchmarks/speed/growth.py --quick --out build/bench/quick

Models R and T with fresh weights whose end token is out of reach, so that every output is as long as wanted:
as long as its source, or 15 words where length is not what changes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import places
import sizes
import torch
from worker_heedful import MODELS

from heedful.config import ModelConfig
from heedful.data.batch import TextBatch, pad
from heedful.data.tokenizer import END, SPECIALS
from heedful.decoding import Greedy, search
from heedful.models import Seq2Seq, build

USUAL = 15  # words of a sentence
LENGTHS = (10, 20, 50, 100, 200, 400)
BATCHES = (1, 4, 16, 64, 256)
VOCABULARIES = (2_000, 4_000, 8_000, 16_000, 32_000, 64_000)


class Point(NamedTuple):
    model: str
    at: int
    milliseconds: float  # a sentence


def endless(name: str, vocabulary: int = sizes.PIECES) -> Seq2Seq:
    """A model of these sizes that never ends a sentence by itself."""
    torch.manual_seed(1)
    model = build(ModelConfig.model_validate(MODELS[name]), vocabulary, vocabulary).eval()
    with torch.no_grad():
        for key, weight in model.named_parameters():
            if key.endswith("output.bias"):
                weight[END] = -1e9
    return model


def milliseconds(model: Seq2Seq, vocabulary: int, length: int, batch: int, seconds: float) -> float:
    """Of a sentence, the best of several tries."""
    torch.manual_seed(2)
    rows = torch.randint(len(SPECIALS), vocabulary, (batch, length - 1)).tolist()
    given, how = TextBatch(pad([[*row, END] for row in rows])), Greedy(max_length=length)
    search(model, given, how)
    best, ends = float("inf"), time.perf_counter() + seconds
    while True:
        begun = time.perf_counter()
        search(model, given, how)
        best = min(best, time.perf_counter() - begun)
        if time.perf_counter() > ends:
            return 1000 * best / batch


def measure(seconds: float, few: bool) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {"length": [], "batch": [], "vocabulary": []}

    def add(what: str, name: str, at: int, value: float) -> None:
        found[what].append(Point(name, at, value))
        print(f"{what} {at}, model {name}: {value:.3f} ms", file=sys.stderr, flush=True)

    def some(values: Sequence[int]) -> Sequence[int]:
        return values[:3] if few else values

    for name in ("R", "T"):
        model = endless(name)
        for length in some(LENGTHS):
            add("length", name, length, milliseconds(model, sizes.PIECES, length, 16, seconds))
        for batch in some(BATCHES):
            add("batch", name, batch, milliseconds(model, sizes.PIECES, USUAL, batch, seconds))
        for vocabulary in some(VOCABULARIES):
            other = endless(name, vocabulary)
            value = milliseconds(other, vocabulary, USUAL, sizes.BATCH, seconds)
            add("vocabulary", name, vocabulary, value)
    return found


def slope(points: Sequence[Point]) -> float:
    """The power of growth, over the upper half of the points.

    >>> round(slope([Point("R", n, n**2.0) for n in (1, 2, 4, 8)]), 3)
    2.0
    """
    upper = points[len(points) // 2 - 1 :] if len(points) > 2 else points
    across, up = np.log([p.at for p in upper]), np.log([p.milliseconds for p in upper])
    return float(np.polyfit(across, up, 1)[0])


def of(points: Sequence[Point], name: str) -> list[Point]:
    return [point for point in points if point.model == name]


def draw(found: dict[str, list[Point]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    titles = {
        "length": "source length (output as long, batch 16)",
        "batch": f"sentences at a time ({USUAL} words)",
        "vocabulary": f"vocabulary ({USUAL} words, batch {sizes.BATCH})",
    }
    figure, several = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for axes, (what, points) in zip(several, found.items(), strict=True):
        for name, colour in (("R", "#2f6f9f"), ("T", "#c77d2e")):
            mine = of(points, name)
            across, up = [p.at for p in mine], [p.milliseconds for p in mine]
            axes.plot(across, up, marker="o", color=colour, label=f"model {name}: power {slope(mine):.2f}")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(sorted({p.at for p in points}))
        axes.xaxis.set_major_formatter(lambda v, _: f"{v / 1000:g}k" if v >= 1000 else f"{v:g}")
        axes.xaxis.set_minor_locator(mpl.ticker.NullLocator())
        axes.yaxis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(mpl.ticker.NullFormatter())
        axes.set_xlabel(titles[what])
        axes.set_ylabel("ms a sentence")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def text(found: dict[str, list[Point]]) -> str:
    parts = ["# How cost grows", "Greedy, milliseconds a sentence (`python benchmarks/speed/growth.py`)."]
    for what, points in found.items():
        ats = sorted({p.at for p in points})
        lines = [[what, *(f"{at:,}" for at in ats), "power"], ["---"] * (len(ats) + 2)]
        for name in ("R", "T"):
            mine = of(points, name)
            cells = [f"{p.milliseconds:.2f}" for p in mine]
            lines.append([f"model {name}", *cells, f"{slope(mine):.2f}"])
        parts.append("\n".join(f"| {' | '.join(cells)} |" for cells in lines))
    parts.append("A power of 1 is growth in proportion; it is taken over the upper half of the points.")
    parts.append("![cost against length, batch and vocabulary](growth.png)")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=places.ROOT / "benchmarks")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="three points of each, one try")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    asked.out.mkdir(parents=True, exist_ok=True)
    found = measure(0.1 if asked.quick else 3.0, asked.quick)
    (asked.out / "growth.md").write_text(text(found), encoding="utf-8")
    draw(found, asked.out / "growth.png")


if __name__ == "__main__":
    main()

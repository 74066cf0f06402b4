"""Measure how decoding time per sentence grows with source length, batch size and vocabulary.

    python benchmarks/speed/growth.py            # minutes; writes growth.md and growth.png to benchmarks/
    python benchmarks/speed/growth.py --quick --out quick

Uses models R and T with random weights whose end token has probability 0, so that outputs have a fixed length: that of
the source, or 15 words where length is not varied.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import paths
import sizes
import torch
from worker_heedful import MODELS

from heedful.config import DecodingOptions, ModelConfig
from heedful.data.batch import TextBatch, pad
from heedful.data.tokenizer import END, SPECIALS
from heedful.decoding import search
from heedful.models import Seq2Seq, build_seq2seq

DEFAULT_LENGTH = 15  # words per sentence
LENGTHS = (10, 20, 50, 100, 200, 400)
BATCHES = (1, 4, 16, 64, 256)
VOCABULARIES = (2_000, 4_000, 8_000, 16_000, 32_000, 64_000)


class Point(NamedTuple):
    model: str
    value: int  # of the varied quantity
    milliseconds: float  # per sentence


def build_endless(name: str, vocabulary: int = sizes.VOCABULARY_SIZE) -> Seq2Seq:
    """Return a model that never ends a sentence by itself."""
    torch.manual_seed(1)
    model = build_seq2seq(ModelConfig.model_validate(MODELS[name]), vocabulary, vocabulary).eval()
    with torch.no_grad():
        for key, weight in model.named_parameters():
            if key.endswith("output.bias"):
                weight[END] = -1e9
    return model


def time_per_sentence(model: Seq2Seq, vocabulary: int, length: int, batch: int, seconds: float) -> float:
    """Return milliseconds per sentence, the best of several runs."""
    torch.manual_seed(2)
    rows = torch.randint(len(SPECIALS), vocabulary, (batch, length - 1)).tolist()
    sources, options = TextBatch(pad([[*row, END] for row in rows])), DecodingOptions(max_length=length)
    search(model, sources, options)
    best, ends = float("inf"), time.perf_counter() + seconds
    while True:
        started = time.perf_counter()
        search(model, sources, options)
        best = min(best, time.perf_counter() - started)
        if time.perf_counter() > ends:
            return 1000 * best / batch


def measure(seconds: float, few: bool) -> dict[str, list[Point]]:
    points: dict[str, list[Point]] = {"length": [], "batch": [], "vocabulary": []}

    def add(quantity: str, name: str, value: int, milliseconds: float) -> None:
        points[quantity].append(Point(name, value, milliseconds))
        print(f"{quantity} {value}, model {name}: {milliseconds:.3f} ms", file=sys.stderr, flush=True)

    def first(values: Sequence[int]) -> Sequence[int]:
        return values[:3] if few else values

    for name in ("R", "T"):
        model = build_endless(name)
        for length in first(LENGTHS):
            add("length", name, length, time_per_sentence(model, sizes.VOCABULARY_SIZE, length, 16, seconds))
        for batch in first(BATCHES):
            add("batch", name, batch, time_per_sentence(model, sizes.VOCABULARY_SIZE, DEFAULT_LENGTH, batch, seconds))
        for vocabulary in first(VOCABULARIES):
            other = build_endless(name, vocabulary)
            milliseconds = time_per_sentence(other, vocabulary, DEFAULT_LENGTH, sizes.DECODING_BATCH, seconds)
            add("vocabulary", name, vocabulary, milliseconds)
    return points


def growth_exponent(points: Sequence[Point]) -> float:
    """Return the exponent of growth, fitted to the upper half of the points.

    >>> round(growth_exponent([Point("R", n, n**2.0) for n in (1, 2, 4, 8)]), 3)
    2.0
    """
    upper = points[len(points) // 2 - 1 :] if len(points) > 2 else points
    x, y = np.log([p.value for p in upper]), np.log([p.milliseconds for p in upper])
    return float(np.polyfit(x, y, 1)[0])


def points_of(points: Sequence[Point], name: str) -> list[Point]:
    return [point for point in points if point.model == name]


def draw(measured: dict[str, list[Point]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    titles = {
        "length": "source length (output as long, batch 16)",
        "batch": f"sentences per batch ({DEFAULT_LENGTH} words)",
        "vocabulary": f"vocabulary ({DEFAULT_LENGTH} words, batch {sizes.DECODING_BATCH})",
    }
    figure, panels = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for axes, (quantity, points) in zip(panels, measured.items(), strict=True):
        for name, color in (("R", "#2f6f9f"), ("T", "#c77d2e")):
            own = points_of(points, name)
            x, y = [p.value for p in own], [p.milliseconds for p in own]
            axes.plot(x, y, marker="o", color=color, label=f"model {name}: exponent {growth_exponent(own):.2f}")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(sorted({p.value for p in points}))
        axes.xaxis.set_major_formatter(lambda v, _: f"{v / 1000:g}k" if v >= 1000 else f"{v:g}")
        axes.xaxis.set_minor_locator(mpl.ticker.NullLocator())
        axes.yaxis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(mpl.ticker.NullFormatter())
        axes.set_xlabel(titles[quantity])
        axes.set_ylabel("ms per sentence")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def make_text(measured: dict[str, list[Point]]) -> str:
    parts = ["# How cost grows", "Greedy decoding, milliseconds per sentence (`python benchmarks/speed/growth.py`)."]
    for quantity, points in measured.items():
        values = sorted({p.value for p in points})
        lines = [[quantity, *(f"{value:,}" for value in values), "exponent"], ["---"] * (len(values) + 2)]
        for name in ("R", "T"):
            own = points_of(points, name)
            cells = [f"{p.milliseconds:.2f}" for p in own]
            lines.append([f"model {name}", *cells, f"{growth_exponent(own):.2f}"])
        parts.append("\n".join(f"| {' | '.join(cells)} |" for cells in lines))
    parts.append("An exponent of 1 is proportional growth; it is fitted to the upper half of the points.")
    parts.append("![cost against length, batch and vocabulary](growth.png)")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=paths.ROOT / "benchmarks")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="three points each, one run")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)
    measured = measure(0.1 if arguments.quick else 3.0, arguments.quick)
    (arguments.out / "growth.md").write_text(make_text(measured), encoding="utf-8")
    draw(measured, arguments.out / "growth.png")


if __name__ == "__main__":
    main()

"""What a step of the LSTMN costs by its position, beside a plain LSTM of the same size, in one run.

    python benchmarks/lstmn.py            # some minutes; writes lstmn.md and lstmn.png to benchmarks/
    python benchmarks/lstmn.py --quick --out build/bench/quick

A text of random vectors is read, forth and back as in training, at growing lengths, the two readers in turn;
what a longer text costs more, over how much longer it is, is the cost of a step in between. A third line is
the LSTMN a step at a time, without the way back, as it is read when scores are watched. Processor time of one
thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from heedful.layers.lstmn import LSTMN

ROOT = Path(__file__).parents[1]
LENGTHS = (8, 24, 40, 56, 72, 104, 136, 200, 264, 328, 392)
NAMES = {"lstm": "LSTM", "lstmn": "LSTMN", "steps": "LSTMN, a step at a time"}
COLOURS = {"lstm": "#888888", "lstmn": "#2f6f9f", "steps": "#c77d2e"}


class Point(NamedTuple):
    position: float
    microseconds: float  # a step of one row


class Fit(NamedTuple):
    """`start + slope * position`, and the share of the variance that this line explains."""

    start: float
    slope: float
    explained: float


def fitted(points: Sequence[Point]) -> Fit:
    """
    >>> fit = fitted([Point(1, 3.0), Point(2, 5.0), Point(4, 9.0)])
    >>> round(fit.start, 6), round(fit.slope, 6), round(fit.explained, 6)
    (1.0, 2.0, 1.0)
    """
    across, up = np.array([p.position for p in points]), np.array([p.microseconds for p in points])
    slope, start = np.polyfit(across, up, 1)
    left = ((up - start - slope * across) ** 2).sum()
    return Fit(float(start), float(slope), 1 - float(left / max(((up - up.mean()) ** 2).sum(), 1e-12)))


def seconds(work: Callable[[], object], tries: int) -> float:
    """The best of several tries."""
    best = float("inf")
    for _ in range(tries):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return best


def whole_texts(width: int, rows: int, lengths: Sequence[int], tries: int) -> dict[str, list[Point]]:
    """Both readers at every length, in turn, forth and back."""
    torch.manual_seed(1)
    readers = {"lstm": nn.LSTM(width, width, batch_first=True), "lstmn": LSTMN(width, width)}
    took: dict[str, list[float]] = {name: [] for name in readers}

    def run(name: str, x: Tensor) -> None:
        read = readers[name](x)
        hidden: Tensor = read[0]
        hidden.sum().backward()  # type: ignore[no-untyped-call]

    for length in lengths:
        x = torch.randn(rows, length, width)
        for name in readers:
            run(name, x)
            took[name].append(seconds(lambda n=name, given=x: run(n, given), tries))  # type: ignore[misc]
    return {
        name: [
            Point((first + last) / 2, 1e6 * (after - before) / (last - first) / rows)
            for (first, last), (before, after) in zip(pairwise(lengths), pairwise(found), strict=True)
        ]
        for name, found in took.items()
    }


@torch.inference_mode()
def single_steps(width: int, rows: int, lengths: Sequence[int], tries: int) -> list[Point]:
    """One step of the cell on tapes of these lengths."""
    torch.manual_seed(1)
    stack = LSTMN(width, width)
    found = []
    for length in lengths:
        (state,) = stack(torch.randn(rows, length, width)).state
        x = torch.randn(rows, width)
        took = seconds(lambda at=state, given=x: stack.cells[0](given, at), 4 * tries)  # type: ignore[misc]
        found.append(Point(length, 1e6 * took / rows))
    return found


def draw(found: dict[str, list[Point]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
    for name, points in found.items():
        fit = fitted(points)
        across = np.array([p.position for p in points])
        axes.plot(across, [p.microseconds for p in points], "o", color=COLOURS[name])
        label = f"{NAMES[name]}: {fit.start:.0f} + {fit.slope:.2f} t µs (R² {fit.explained:.2f})"
        axes.plot(across, fit.start + fit.slope * across, color=COLOURS[name], label=label)
    axes.set(xlabel="position t in the text", ylabel="µs a step and row", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def text(found: dict[str, list[Point]], width: int, rows: int) -> str:
    lines = [["", "at 0", "a position more", "R²"], ["---"] * 4]
    for name, points in found.items():
        fit = fitted(points)
        lines.append([NAMES[name], f"{fit.start:.1f} µs", f"{fit.slope:.3f} µs", f"{fit.explained:.3f}"])
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    lstmn = fitted(found["lstmn"])
    even = f"about position {lstmn.start / lstmn.slope:.0f}" if lstmn.slope > 0 else "no position"
    return (
        "# What a step of the LSTMN costs\n\n"
        f"Processor time of a step and row, width {width}, {rows} rows, one thread, fitted as a line in the"
        " position (`python benchmarks/lstmn.py`). The first two are read forth and back, in turn;"
        " the third is one step forth on a tape of that length.\n\n"
        f"{table}\n\nReading the tape costs as much as all the rest of a step at {even}.\n\n"
        "![cost by position](lstmn.png)\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks")
    parser.add_argument("--width", type=int, default=300)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--quick", action="store_true", help="a few lengths, one try")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    asked.out.mkdir(parents=True, exist_ok=True)
    lengths, tries = (LENGTHS[:5], 1) if asked.quick else (LENGTHS, 3)
    found = whole_texts(asked.width, asked.rows, lengths, tries)
    found["steps"] = single_steps(asked.width, asked.rows, lengths, tries)
    (asked.out / "lstmn.md").write_text(text(found, asked.width, asked.rows), encoding="utf-8")
    draw(found, asked.out / "lstmn.png")
    print(text(found, asked.width, asked.rows))


if __name__ == "__main__":
    main()

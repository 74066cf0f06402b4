"""Measure the cost of an LSTMN step by position, next to a plain LSTM of the same size.

    python benchmarks/lstmn.py            # some minutes; writes lstmn.md and lstmn.png to benchmarks/
    python benchmarks/lstmn.py --quick --out quick

Runs the forward and backward pass over random vectors of growing lengths, the two models in turn; the extra time of a
longer text divided by the extra length is the cost of a step in between. A third curve is the LSTMN step by step,
forward only, as it runs when scores are recorded. Processor time of one thread.
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
NAMES = {"lstm": "LSTM", "lstmn": "LSTMN", "steps": "LSTMN, step by step"}
COLORS = {"lstm": "#888888", "lstmn": "#2f6f9f", "steps": "#c77d2e"}


class Point(NamedTuple):
    position: float
    microseconds: float  # per step and row


class Fit(NamedTuple):
    """The line `intercept + slope * position`, and the share of the variance that it explains."""

    intercept: float
    slope: float
    explained: float


def fit_line(points: Sequence[Point]) -> Fit:
    """
    >>> fit = fit_line([Point(1, 3.0), Point(2, 5.0), Point(4, 9.0)])
    >>> round(fit.intercept, 6), round(fit.slope, 6), round(fit.explained, 6)
    (1.0, 2.0, 1.0)
    """
    x, y = np.array([p.position for p in points]), np.array([p.microseconds for p in points])
    slope, intercept = np.polyfit(x, y, 1)
    residual = ((y - intercept - slope * x) ** 2).sum()
    return Fit(float(intercept), float(slope), 1 - float(residual / max(((y - y.mean()) ** 2).sum(), 1e-12)))


def best_time(work: Callable[[], object], tries: int) -> float:
    """Return the least processor time of several runs, in seconds."""
    best = float("inf")
    for _ in range(tries):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best


def time_texts(width: int, rows: int, lengths: Sequence[int], tries: int) -> dict[str, list[Point]]:
    """Time the forward and backward pass of both models at every length, in turn."""
    torch.manual_seed(1)
    models = {"lstm": nn.LSTM(width, width, batch_first=True), "lstmn": LSTMN(width, width)}
    times: dict[str, list[float]] = {name: [] for name in models}

    def run(name: str, x: Tensor) -> None:
        hidden: Tensor = models[name](x)[0]
        hidden.sum().backward()  # type: ignore[no-untyped-call]

    for length in lengths:
        x = torch.randn(rows, length, width)
        for name in models:
            run(name, x)
            times[name].append(best_time(lambda n=name, x=x: run(n, x), tries))  # type: ignore[misc]
    return {
        name: [
            Point((first + last) / 2, 1e6 * (after - before) / (last - first) / rows)
            for (first, last), (before, after) in zip(pairwise(lengths), pairwise(measured), strict=True)
        ]
        for name, measured in times.items()
    }


@torch.inference_mode()
def time_steps(width: int, rows: int, lengths: Sequence[int], tries: int) -> list[Point]:
    """Time one step of the cell on tapes of these lengths."""
    torch.manual_seed(1)
    stack = LSTMN(width, width)
    points = []
    for length in lengths:
        (state,) = stack(torch.randn(rows, length, width)).state
        x = torch.randn(rows, width)
        seconds = best_time(lambda state=state, x=x: stack.cells[0](x, state), 4 * tries)  # type: ignore[misc]
        points.append(Point(length, 1e6 * seconds / rows))
    return points


def draw(measured: dict[str, list[Point]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
    for name, points in measured.items():
        fit = fit_line(points)
        x = np.array([p.position for p in points])
        axes.plot(x, [p.microseconds for p in points], "o", color=COLORS[name])
        label = f"{NAMES[name]}: {fit.intercept:.0f} + {fit.slope:.2f} t µs (R² {fit.explained:.2f})"
        axes.plot(x, fit.intercept + fit.slope * x, color=COLORS[name], label=label)
    axes.set(xlabel="position t in the text", ylabel="µs per step and row", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def make_text(measured: dict[str, list[Point]], width: int, rows: int) -> str:
    lines = [["", "at position 0", "per further position", "R²"], ["---"] * 4]
    for name, points in measured.items():
        fit = fit_line(points)
        lines.append([NAMES[name], f"{fit.intercept:.1f} µs", f"{fit.slope:.3f} µs", f"{fit.explained:.3f}"])
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    lstmn = fit_line(measured["lstmn"])
    even = f"about position {lstmn.intercept / lstmn.slope:.0f}" if lstmn.slope > 0 else "no position"
    return (
        "# Cost of an LSTMN step\n\n"
        f"Processor time per step and row, width {width}, {rows} rows, one thread, fitted as a line in the position"
        " (`python benchmarks/lstmn.py`). The first two are forward and backward passes, measured in turn; the third is"
        " one forward step on a tape of that length.\n\n"
        f"{table}\n\nAttending to the tape costs as much as the rest of a step at {even}.\n\n"
        "![cost by position](lstmn.png)\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks")
    parser.add_argument("--width", type=int, default=300)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--quick", action="store_true", help="a few lengths, one run")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    lengths, tries = (LENGTHS[:5], 1) if arguments.quick else (LENGTHS, 3)
    measured = time_texts(arguments.width, arguments.rows, lengths, tries)
    measured["steps"] = time_steps(arguments.width, arguments.rows, lengths, tries)
    (arguments.out / "lstmn.md").write_text(make_text(measured, arguments.width, arguments.rows), encoding="utf-8")
    draw(measured, arguments.out / "lstmn.png")
    print(make_text(measured, arguments.width, arguments.rows))


if __name__ == "__main__":
    main()

"""Measure and draw exact match and BLEU per source length, with and without attention.

python benchmarks/figures/length_curve.py        # after run.py world-lengths-more world-lengths-plain

Curves that are already recorded are not measured again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from run import MODELS, RECORDS, ROOT

import heedful
from heedful.metrics import evaluate
from heedful.tasks.seq2seq.evaluate import evaluation_pairs

MODEL_FOLDERS = {
    "with attention (`cgru`)": "world-lengths-more-1",
    "without attention (`seq2seq`)": "world-lengths-plain-1",
}
RECORD = RECORDS / "lengths.curve.json"
PICTURE = ROOT / "docs" / "lengths.png"


class Point(NamedTuple):
    """Metrics of the sentences of one length: exact match in %, number of sentences, BLEU."""

    exact: float
    count: int
    bleu: float


Curve = dict[int, Point]


def measure_curve(folder: Path) -> Curve:
    pairs = evaluation_pairs(folder, (), "test")
    outputs = heedful.load(folder)([pair.source for pair in pairs])
    by_length: dict[int, list[tuple[str, str]]] = {}
    for pair, output in zip(pairs, outputs, strict=True):
        by_length.setdefault(len(pair.source.split()), []).append((output, pair.target))
    return {length: _measure_point(group) for length, group in sorted(by_length.items())}


def _measure_point(group: list[tuple[str, str]]) -> Point:
    outputs, targets = zip(*group, strict=True)
    exact, bleu = (metric.value for metric in evaluate(["exact", "bleu"], outputs, targets))
    return Point(exact, len(group), bleu)


def draw(curves: dict[str, Curve], path: Path = PICTURE) -> None:
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
    for axes, title, field in zip(panels, ("exact match, %", "BLEU"), (0, 2), strict=True):
        for (label, curve), color in zip(curves.items(), ("#0072b2", "#d55e00"), strict=False):
            axes.plot(list(curve), [point[field] for point in curve.values()], "o-", ms=3, color=color, label=label)
        axes.set(xlabel="words in the source", title=title, ylim=(-3, 103))
        axes.grid(alpha=0.3)
    panels[0].legend(frameon=False, loc="center right")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def read_curves() -> dict[str, Curve]:
    """Return the recorded curves; their models need not exist any more."""
    if not RECORD.is_file():
        return {}
    curves = json.loads(RECORD.read_text())
    return {name: {int(length): Point(*point) for length, point in curve.items()} for name, curve in curves.items()}


def main() -> None:
    curves = read_curves()
    for name, folder in MODEL_FOLDERS.items():
        if (MODELS / folder / "model.json").is_file() and name not in curves:
            curves[name] = measure_curve(MODELS / folder)
    RECORD.write_text(json.dumps(curves, indent=1) + "\n")
    draw(curves)
    for name, curve in curves.items():
        print(f"{name}: {min(point.exact for point in curve.values()):.1f} % at its worst length")


if __name__ == "__main__":
    main()

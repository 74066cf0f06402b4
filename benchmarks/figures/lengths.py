"""The length curve: exact match against the length of the source, with attention and without.

python benchmarks/figures/lengths.py        # after run.py world-lengths-more world-lengths-plain

Only what has no curve yet is measured.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from run import MODELS, RECORDS, ROOT

from heedful.evaluation import evaluate
from heedful.tasks.evaluate import pairs_of
from heedful.tasks.use import open_models, texts

LINES = {
    "with attention (`cgru`)": "world-lengths-more-1",
    "one vector (`seq2seq`)": "world-lengths-plain-1",
}
RECORD = RECORDS / "lengths.curve.json"
PICTURE = ROOT / "docs" / "lengths.png"


class Point(NamedTuple):
    """Sentences of one length: exact match in per cent, how many there are, BLEU."""

    exact: float
    count: int
    bleu: float


Curve = dict[int, Point]


def curve(folder: Path) -> Curve:
    pairs = pairs_of(folder, (), "test")
    ready = open_models([folder])
    outputs = [best[0] for best in texts(ready, [pair.source for pair in pairs], ready.decoding)]
    found: dict[int, list[tuple[str, str]]] = {}
    for pair, output in zip(pairs, outputs, strict=True):
        found.setdefault(len(pair.source.split()), []).append((output, pair.target))
    return {length: point(said) for length, said in sorted(found.items())}


def point(said: list[tuple[str, str]]) -> Point:
    outputs, targets = zip(*said, strict=True)
    exact, bleu = (metric.value for metric in evaluate(["exact", "bleu"], outputs, targets))
    return Point(exact, len(said), bleu)


def draw(curves: dict[str, Curve], path: Path = PICTURE) -> None:
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
    for axes, title, at in zip(panels, ("translated exactly, %", "BLEU"), (0, 2), strict=True):
        for (label, found), colour in zip(curves.items(), ("#0072b2", "#d55e00"), strict=False):
            axes.plot(
                list(found), [point[at] for point in found.values()], "o-", ms=3, color=colour, label=label
            )
        axes.set(xlabel="words in the source", title=title, ylim=(-3, 103))
        axes.grid(alpha=0.3)
    panels[0].legend(frameon=False, loc="center right")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def kept() -> dict[str, Curve]:
    """What was found before: a model need not stay to keep its curve."""
    if not RECORD.is_file():
        return {}
    found = json.loads(RECORD.read_text())
    return {
        name: {int(first): Point(*point) for first, point in line.items()} for name, line in found.items()
    }


def main() -> None:
    curves = kept()
    for name, folder in LINES.items():
        if (MODELS / folder / "model.json").is_file() and name not in curves:
            curves[name] = curve(MODELS / folder)
    RECORD.write_text(json.dumps(curves, indent=1) + "\n")
    draw(curves)
    for name, found in curves.items():
        print(f"{name}: {min(point.exact for point in found.values()):.1f} % at its worst length")


if __name__ == "__main__":
    main()

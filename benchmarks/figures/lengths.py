"""The length curve: exact match against the length of the source, with attention and without.

python benchmarks/figures/lengths.py        # after run.py world-lengths-more world-lengths-plain
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from run import MODELS, RECORDS, ROOT

from heedful.tasks.evaluate import pairs_of
from heedful.tasks.use import open_models, texts

WIDE = 1  # lengths in a bucket
LINES = {
    "with attention (`cgru`)": "world-lengths-more-1",
    "one vector (`seq2seq`)": "world-lengths-plain-1",
}
RECORD = RECORDS / "lengths.curve.json"
PICTURE = ROOT / "docs" / "lengths.png"


def curve(folder: Path) -> dict[int, tuple[float, int]]:
    """For each bucket its first length: exact match in per cent, and sentences."""
    pairs = pairs_of(folder, (), "test")
    ready = open_models([folder])
    outputs = [best[0] for best in texts(ready, [pair.source for pair in pairs], ready.decoding)]
    right: dict[int, list[bool]] = {}
    for pair, output in zip(pairs, outputs, strict=True):
        first = len(pair.source.split()) // WIDE * WIDE
        right.setdefault(first, []).append(output == pair.target)
    return {first: (100 * sum(found) / len(found), len(found)) for first, found in sorted(right.items())}


def draw(curves: dict[str, dict[int, tuple[float, int]]], path: Path = PICTURE) -> None:
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for (label, found), colour, mark in zip(curves.items(), ("#0072b2", "#d55e00"), "os", strict=False):
        middle = [first + (WIDE - 1) / 2 for first in found]
        axes.plot(middle, [value for value, _ in found.values()], mark + "-", color=colour, label=label)
    axes.set(
        xlabel="words in the source", ylabel="translated exactly, %", ylim=(-3, 103), title="Phrase world"
    )
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def kept() -> dict[str, dict[int, tuple[float, int]]]:
    """What was found before: a model need not stay to keep its curve."""
    if not RECORD.is_file():
        return {}
    found = json.loads(RECORD.read_text())
    return {name: {int(first): tuple(pair) for first, pair in line.items()} for name, line in found.items()}


def main() -> None:
    before = kept()
    curves = {
        name: curve(MODELS / folder) if (MODELS / folder / "model.json").is_file() else before[name]
        for name, folder in LINES.items()
        if name in before or (MODELS / folder).is_dir()
    }
    RECORD.write_text(json.dumps(curves, indent=1) + "\n")
    draw(curves)
    for name, found in curves.items():
        worst = min(value for value, _ in found.values())
        print(f"{name}: {worst:.1f} % at its worst length")


if __name__ == "__main__":
    main()

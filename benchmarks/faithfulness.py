"""Run the faithfulness tests on a classifier and on a translation model; write docs/faithfulness-results.md.

    python benchmarks/figures/run.py sst5:1      # trains the classifier; the translation model is bundled
    python benchmarks/faithfulness.py            # a few minutes

docs/faithfulness.md defines the tests.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from heedful.analysis.faithfulness import TESTS, FaithfulnessOptions
from heedful.analysis.measure import load_items, measure
from heedful.analysis.measure_report import conclusions, faithfulness_rows
from heedful.data.paths import runs_folder
from heedful.tasks.bundled import find_models
from heedful.tasks.model_folder import load_model

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "faithfulness-results.md"
N_ITEMS = 300
INTRODUCTION = """# Faithfulness of attention: two models

The [faithfulness tests](faithfulness.md) on a model that attends once, to classify the sentiment of a sentence (SST-5,
`recipes/sst5.toml`: a bidirectional encoder and one learned query), and on a model that attends at every output word
(English to French, the bundled translation model). The first {items:,} test items of each; the value in brackets is for
comparison. A *decision* is the label, or the next word.

"""


def measure_model(folder: Path) -> dict[str, Any]:
    loaded = load_model(folder)
    items, gold = load_items(loaded, [], "test", None, 0, N_ITEMS)
    return measure(loaded, items, FaithfulnessOptions(TESTS), gold)


def table(classifier: Mapping[str, Any], translator: Mapping[str, Any]) -> list[str]:
    lines = ["| test | classifier | translation model |", "|---|---|---|"]
    reports = (classifier["faithfulness"], translator["faithfulness"])
    for first, second in zip(*map(faithfulness_rows, reports), strict=True):
        name = first[0].replace("the label", "the decision").replace("label", "decision")
        name = name.replace("accuracy,", "accuracy or BLEU,").replace("T6 words", "T6 inputs")
        lines.append(f"| {name} | {first[1]} ({first[2]}) | {second[1]} ({second[2]}) |")
    return lines


def main() -> None:
    reports = {
        "classifier": measure_model(runs_folder() / "figures" / "sst5-1"),
        "translation model": measure_model(find_models([], "translate")[0]),
    }
    lines = [INTRODUCTION.format(items=N_ITEMS).rstrip("\n"), "", *table(*reports.values()), ""]
    for name, report in reports.items():
        lines += [f"The {name}:", "", *(f"- {sentence}" for sentence in conclusions(report)), ""]
    commit = subprocess.run(["git", "describe", "--always"], cwd=ROOT, capture_output=True, text=True, check=False)
    machine = f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, commit {commit.stdout.strip()}"
    lines += [f"`python benchmarks/faithfulness.py`, {machine}.", ""]
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()

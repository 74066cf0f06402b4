"""The honesty tests of a classifier and of a translator, side by side.

    python benchmarks/figures/run.py sst5:1      # the classifier; the translator comes with the package
    python benchmarks/honesty.py                 # a few minutes; writes docs/honesty.md

What their numbers mean is in docs/measures.md.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from heedful.cli.measure import rows, verdicts
from heedful.studies.measure import TESTS, Asked, items_of, measure
from heedful.tasks.bundled import find
from heedful.tasks.folder import open_model

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "honesty.md"
ITEMS = 300
HEAD = """# Does it matter where a model looks?

The same tests ([what they are](measures.md)) of a model that looks once, to say how kind a sentence is
(SST-5, `recipes/sst5.toml`: a bidirectional reader and one learned query), and of one that looks at every
word it writes (English to French, the bundled translator). The first {items:,} test items of each;
in brackets what a figure is to be held against. A *decision* is the label, or the next word.

"""


def looked_into(folder: Path) -> dict[str, Any]:
    opened = open_model(folder)
    found = items_of(opened, [], "test", None, 0, ITEMS)
    return measure(opened, found.pairs, Asked(TESTS), found.gold)


def table(classifier: Mapping[str, Any], translator: Mapping[str, Any]) -> list[str]:
    lines = ["| test | classifier | translator |", "|---|---|---|"]
    for one, two in zip(rows(classifier["tests"]), rows(translator["tests"]), strict=True):
        name = one[0].replace("the label", "the decision").replace("label", "decision")
        name = name.replace("accuracy,", "quality (accuracy, BLEU),")
        lines.append(f"| {name} | {one[1]} ({one[2]}) | {two[1]} ({two[2]}) |")
    return lines


def main() -> None:
    both = {
        "classifier": looked_into(ROOT / "build" / "figures" / "sst5-1"),
        "translator": looked_into(find([], "translate")[0]),
    }
    lines = [HEAD.format(items=ITEMS).rstrip("\n"), "", *table(both["classifier"], both["translator"]), ""]
    for name, found in both.items():
        lines += [f"The {name}, in words:", "", *(f"- {said}" for said in verdicts(found["tests"])), ""]
    commit = subprocess.run(["git", "describe", "--always"], cwd=ROOT, capture_output=True, text=True)
    when = f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, commit {commit.stdout.strip()}"
    lines += [f"`python benchmarks/honesty.py`, {when}.", ""]
    lines += controls()
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


def controls() -> list[str]:
    """What stands below the generated part of the page stays."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return text[text.index("## ") :].splitlines() + [""] if "## " in text else []


if __name__ == "__main__":
    main()

"""What a headline must beat: the first words of the text itself.

    python benchmarks/figures/leads.py          # all headlines of rows.py; minutes

How many words is chosen on validation data (by the sum of the metrics), test data is scored once. Written
into the records beside the models' own, from which `run.py --report` makes its table.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rows import ROWS, Row
from run import ROOT, commit, write

from heedful.config.load import load_recipe
from heedful.data.readers import TextPair
from heedful.evaluation import Metric, evaluate
from heedful.tasks.text import open_splits

WORDS = (*range(6, 31, 2), *range(35, 66, 5))
TUNED_ON = 1_000  # validation pairs


def by_lead(pairs: Sequence[TextPair], words: int, metrics: Sequence[str]) -> list[Metric]:
    outputs = [" ".join(pair.source.split()[:words]) for pair in pairs]
    return evaluate(metrics, outputs, [pair.target for pair in pairs])


def reached(row: Row) -> dict[str, object]:
    path = ROOT / "recipes" / f"{row.recipe}.toml"
    splits = open_splits(load_recipe(path).recipe, path.parent)
    valid = list(splits["valid"])[:TUNED_ON]
    sums = {n: sum(found.value for found in by_lead(valid, n, row.metrics)) for n in WORDS}
    best = max(sums, key=sums.__getitem__)
    found = by_lead(list(splits["test"]), best, row.metrics)
    return {
        "title": f"the first {best} words",
        "by": "leads.py",
        "valid": {str(n): total for n, total in sums.items()},
        "test": {
            m: {"value": f.value, "signature": f.signature} for m, f in zip(row.metrics, found, strict=True)
        },
        "commit": commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }


def main() -> None:
    for row in ROWS:
        if row.baseline.endswith("-lead"):
            found = reached(row)
            write(row.baseline, found)
            print(row.name, found["title"], found["test"], flush=True)


if __name__ == "__main__":
    main()

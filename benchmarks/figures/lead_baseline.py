"""Evaluate a baseline for headlines: the first words of the text.

    python benchmarks/figures/lead_baseline.py          # all headline rows of rows.py; minutes

The number of words is chosen on validation data by the sum of the metrics; test data is evaluated once. The results
are written to the records of the rows' baselines, from which `run.py --report` makes its table.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rows import ROWS, Row
from run import ROOT, git_commit, write_record

from heedful.config.load import load_recipe
from heedful.data.pairs import TextPair
from heedful.metrics import Metric, evaluate
from heedful.tasks.splits import open_splits

WORD_COUNTS = (*range(6, 31, 2), *range(35, 66, 5))
N_VALIDATION_PAIRS = 1_000


def evaluate_lead(pairs: Sequence[TextPair], words: int, metrics: Sequence[str]) -> list[Metric]:
    outputs = [" ".join(pair.source.split()[:words]) for pair in pairs]
    return evaluate(metrics, outputs, [pair.target for pair in pairs])


def make_record(row: Row) -> dict[str, object]:
    path = ROOT / "recipes" / f"{row.recipe}.toml"
    splits = open_splits(load_recipe(path).recipe, path.parent)
    valid = list(splits["valid"])[:N_VALIDATION_PAIRS]
    sums = {n: sum(metric.value for metric in evaluate_lead(valid, n, row.metrics)) for n in WORD_COUNTS}
    best = max(sums, key=sums.__getitem__)
    test = evaluate_lead(list(splits["test"]), best, row.metrics)
    return {
        "title": f"baseline: the first {best} words",
        "script": "lead_baseline.py",
        "valid": {str(n): total for n, total in sums.items()},
        "test": {m: {"value": f.value, "signature": f.signature} for m, f in zip(row.metrics, test, strict=True)},
        "commit": git_commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }


def main() -> None:
    for row in ROWS:
        if row.baseline.endswith("-lead"):
            record = make_record(row)
            write_record(row.baseline, record)
            print(row.name, record["title"], record["test"], flush=True)


if __name__ == "__main__":
    main()

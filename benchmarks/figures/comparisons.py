"""Run the comparisons of docs/results.md, each one call of `heedful compare`; store its record and picture.

    python benchmarks/figures/comparisons.py luong luong-local   # an hour on two cores; resumes where it stopped
    python benchmarks/figures/comparisons.py pooling-trec pooling-sst5

`run.py --report` writes the tables from the records.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
from datetime import UTC, datetime

from rows import COMPARISONS
from run import ENVIRONMENT, HEEDFUL, MODELS, RECORDS, ROOT, expand, git_commit


def run_comparison(name: str, jobs: int) -> None:
    comparison = COMPARISONS[name]
    command = comparison.command(name, jobs)
    subprocess.run([*HEEDFUL, *expand(command)], cwd=ROOT, env=ENVIRONMENT, check=True)
    record = {
        "title": comparison.title,
        "command": shlex.join(["heedful", *command]),
        "rows": json.loads((MODELS / name / "compare.json").read_text(encoding="utf-8")),
        "seeds": comparison.seeds,
        "commit": git_commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    (RECORDS / f"{name}.compare.json").write_text(text, encoding="utf-8")
    shutil.copy(MODELS / name / "compare.png", ROOT / "docs" / f"{name}.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="+", choices=COMPARISONS, help="comparisons to run")
    parser.add_argument("--jobs", type=int, default=2, help="number of trainings at a time, one thread each")
    arguments = parser.parse_args()
    for name in arguments.names:
        run_comparison(name, arguments.jobs)


if __name__ == "__main__":
    main()

"""The comparisons of docs/results.md, each one `heedful compare`: its record and its picture.

    python benchmarks/figures/compared.py luong luong-local  # an hour of two cores; what was stopped goes on
    python benchmarks/figures/compared.py pooling-trec pooling-sst5

The tables are made of the records by `run.py --report`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime

from run import ENVIRONMENT, HEEDFUL, MODELS, RECORDS, ROOT, commit


@dataclass(frozen=True)
class Comparison:
    """What is varied, for how long, and what the page says above the table."""

    title: str
    recipe: str
    variants: tuple[str, ...]
    budget: str
    seeds: int
    vary: tuple[str, ...] = ()
    baselines: bool = True

    def command(self, name: str, jobs: int) -> list[str]:
        """What a user would type, behind `heedful`."""
        chosen = [part for variant in self.variants for part in ("--variant", variant)]
        chosen += [part for key in self.vary for part in ("--vary", key)]
        chosen += ["--seeds", str(self.seeds), "--budget", self.budget, "--jobs", str(jobs)]
        chosen += [] if self.baselines else ["--no-baselines"]
        return ["compare", f"recipes/{self.recipe}.toml", *chosen, "--out", f"build/figures/{name}"]


POOLINGS = ("model.classifier.query=learned", "model.classifier.pooling=mean")
FEEDS = ("model.decoder.feed=none,attentional",)
COMPARISONS = {
    "luong": Comparison(
        "Which score? Luong 2015, table 4, on Multi30k",
        "multi30k-luong",
        tuple(f"model.attention.score={score}" for score in ("location", "dot", "general", "concat")),
        "1900steps",
        2,
        FEEDS,
    ),
    "luong-local": Comparison(
        "Looking at all or at a part? Luong 2015, table 4, on Multi30k",
        "multi30k-luong",
        tuple(f"model.attention.placement={place}" for place in ("global", "local-m", "local-p")),
        "1900steps",
        2,
        FEEDS,
        False,  # they stand in the table above
    ),
    "pooling-trec": Comparison(
        "Looks against means: TREC-6",
        "trec",
        POOLINGS,
        "1900steps",
        3,
        ("model.classifier.neighbours=0",),
        False,
    ),
    "pooling-sst5": Comparison(
        "Looks against means: SST-5", "sst5", POOLINGS, "1700steps", 3, baselines=False
    ),
}


def work(name: str, jobs: int) -> None:
    comparison = COMPARISONS[name]
    command = comparison.command(name, jobs)
    subprocess.run([*HEEDFUL, *command], cwd=ROOT, env=ENVIRONMENT, check=True)
    record = {
        "title": comparison.title,
        "command": shlex.join(["heedful", *command]),
        "rows": json.loads((MODELS / name / "compare.json").read_text(encoding="utf-8")),
        "seeds": comparison.seeds,
        "commit": commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    (RECORDS / f"{name}.compare.json").write_text(text, encoding="utf-8")
    shutil.copy(MODELS / name / "compare.png", ROOT / "docs" / f"{name}.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="+", choices=COMPARISONS, help="which of them")
    parser.add_argument("--jobs", type=int, default=2, help="trainings side by side, a thread each")
    asked = parser.parse_args()
    for name in asked.names:
        work(name, asked.jobs)


if __name__ == "__main__":
    main()

"""Luong 2015, table 4, tried on Multi30k: the comparison, its record and its picture.

    python benchmarks/figures/luong.py          # two hours of one thread; what was stopped goes on

The table in docs/results.md is made of the record by `run.py --report`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime

from run import ENVIRONMENT, HEEDFUL, MODELS, RECORDS, ROOT, commit

SCORES = ("location", "dot", "general", "concat")
PLACEMENTS = ("local-m", "local-p")
SEEDS, BUDGET = 2, "1900steps"
OUT = MODELS / "luong"
PICTURE = ROOT / "docs" / "luong.png"


def command() -> list[str]:
    """What a user would type, behind `heedful`."""
    looks = [f"model.attention.score={score}" for score in SCORES]
    looks += [f"model.attention.placement={placement}" for placement in PLACEMENTS]
    chosen = [part for look in looks for part in ("--variant", look)]
    chosen += ["--vary", "model.decoder.feed=none,attentional", "--seeds", str(SEEDS), "--budget", BUDGET]
    return ["compare", "recipes/multi30k-luong.toml", *chosen, "--out", str(OUT.relative_to(ROOT))]


def main() -> None:
    subprocess.run([*HEEDFUL, *command()], cwd=ROOT, env=ENVIRONMENT, check=True)
    record = {
        "command": " ".join(["heedful", *command()]),
        "rows": json.loads((OUT / "compare.json").read_text(encoding="utf-8")),
        "seeds": SEEDS,
        "commit": commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    (RECORDS / "luong.compare.json").write_text(text, encoding="utf-8")
    shutil.copy(OUT / "compare.png", PICTURE)


if __name__ == "__main__":
    main()

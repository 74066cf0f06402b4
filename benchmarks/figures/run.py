"""Train what the rows name, score each finished model once on its test data, write it down.

    python benchmarks/figures/run.py                             # all; days of one core
    python benchmarks/figures/run.py multi30k-en-de --jobs 1     # some
    python benchmarks/figures/run.py --report                    # docs/results.md from what is written down

Models are in build/figures; a training that was stopped goes on. Each has one thread, `--jobs` of them run
side by side (a recipe may ask for more). Records are in benchmarks/figures/records, one file a row.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from report import write_report
from rows import BY_NAME, ROWS, Row

from heedful.config import load_recipe

ROOT = Path(__file__).parents[2]
RECORDS = Path(__file__).parent / "records"
MODELS = ROOT / "build" / "figures"
HEEDFUL = [sys.executable, "-m", "heedful"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "NO_COLOR": "1"}
_writing = Lock()


def command(row: Row, seed: int) -> list[str]:
    """What a user would type, behind `heedful`."""
    recipe = f"recipes/{row.recipe}.toml"
    sets = [text.replace("{seed}", str(seed)) for text in row.sets]
    if row.teachers:
        sets.append(f'data.also=["data:{row.taught}", "../build/figures/{row.name}.said"]')
    return ["train", recipe, *sets, f"training.seed={seed}", "--out", f"build/figures/{row.folder}-{seed}"]


def teach(row: Row) -> list[str]:
    """What a user would type, behind `heedful`, to have other models write what this one reads."""
    chosen = [part for name in row.teachers for part in ("-m", f"build/figures/{name}")]
    return ["translate", *chosen, "--beam", "5", f"$HEEDFUL_DATA/{row.taught}"]


def said(row: Row) -> Path:
    """The file of it, written whole or not at all."""
    path = MODELS / f"{row.name}.said"
    if not path.exists():
        half = path.with_suffix(".half")
        with half.open("w") as file:
            parts = [os.path.expandvars(part) for part in teach(row)]
            subprocess.run(["nice", *HEEDFUL, *parts], cwd=ROOT, env=ENVIRONMENT, check=True, stdout=file)
        half.rename(path)
    return path


def train(row: Row, seed: int) -> None:
    if row.teachers:
        said(row)
    if row.made:
        subprocess.run([sys.executable, ROOT / "benchmarks" / "figures" / row.made], cwd=ROOT, check=True)
    log = MODELS / f"{row.folder}-{seed}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:
        subprocess.run(
            ["nice", *HEEDFUL, *command(row, seed)],
            cwd=ROOT,
            env=ENVIRONMENT,
            check=True,
            stdout=file,
            stderr=file,
        )


def score(row: Row, seeds: tuple[int, ...]) -> dict[str, Any]:
    """The test figures of one model, or of several together."""
    return figures_of([MODELS / f"{row.folder}-{seed}" for seed in seeds], row.metrics, row.tested)


def figures_of(folders: Sequence[Path], metrics: Sequence[str], files: Sequence[str] = ()) -> dict[str, Any]:
    """What `heedful evaluate` says of a model, or of several that write as one, on test data."""
    chosen = [part for folder in folders for part in ("-m", str(folder))]
    asked = [part for metric in metrics for part in ("--metric", metric)]
    data = [part for file in files for part in ("--data", file)] or ["--split", "test"]
    done = subprocess.run(
        [*HEEDFUL, "evaluate", *chosen, *asked, *data, "--json"],
        cwd=ROOT,
        env=ENVIRONMENT,
        check=True,
        capture_output=True,
        text=True,
    )
    found = json.loads(done.stdout)["metrics"]
    return {
        name: {"value": metric["value"], "signature": metric["signature"]}
        for name, metric in zip(metrics, found, strict=False)
    }


def commit() -> str:
    done = subprocess.run(["git", "describe", "--always"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def record_of(row: Row, seed: int) -> dict[str, Any]:
    folder = MODELS / f"{row.folder}-{seed}"
    card = json.loads((folder / "model.json").read_text())
    log = folder / "metrics.jsonl"  # what only counts has none
    reports = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    last = reports[-1] if reports else {"seconds": 0.0, "step": 0}
    return {
        "seed": seed,
        "command": " ".join(["heedful", *command(row, seed)]),
        **({"before": " ".join(["heedful", *teach(row)])} if row.teachers else {}),
        "minutes": round(last["seconds"] / 60, 1),
        "threads": load_recipe(folder / "recipe.toml").recipe.training.threads or 1,
        "steps": last["step"],
        "parameters": card["parameters"],
        "valid": card["figures"],
        "test": score(row, (seed,)),
        "commit": commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def read(name: str) -> dict[str, Any]:
    path = RECORDS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {"runs": []}


def write(name: str, record: dict[str, Any]) -> None:
    RECORDS.mkdir(exist_ok=True)
    (RECORDS / f"{name}.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def work(row: Row, seed: int) -> None:
    """One seed of one row, unless it is written down already."""
    if any(run["seed"] == seed for run in read(row.name)["runs"]):
        return
    train(row, seed)
    run = record_of(row, seed)
    with _writing:
        record = read(row.name)
        record["runs"] = sorted([*record["runs"], run], key=lambda r: r["seed"])
        write(row.name, record)
    figures = "  ".join(f"{name} {found['value']:.2f}" for name, found in run["test"].items())
    print(f"{row.name} {seed}: {figures}  ({run['minutes']} min)", flush=True)
    _together(row)


def _together(row: Row) -> None:
    with _writing:
        record = read(row.name)
    done = tuple(run["seed"] for run in record["runs"])
    if not row.ensemble or done != row.seeds or "ensemble" in record:
        return
    record["ensemble"] = {"seeds": done, "test": score(row, done), "commit": commit()}
    with _writing:
        write(row.name, record)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rows", nargs="*", help="names of rows, or name:seed; none: all")
    parser.add_argument("--jobs", type=int, default=2, help="trainings side by side, a thread each")
    parser.add_argument("--report", action="store_true", help="only write docs/results.md")
    asked = parser.parse_args()
    if not asked.report:
        wanted = [name.partition(":") for name in asked.rows] or [(row.name, "", "") for row in ROWS]
        for name, _, _ in wanted:
            if name not in BY_NAME:
                parser.error(f"{name}: no such row; there are {', '.join(BY_NAME)}")
        todo = [
            (BY_NAME[name], seed)
            for name, _, one in wanted
            for seed in ((int(one),) if one else BY_NAME[name].seeds)
        ]
        with ThreadPoolExecutor(asked.jobs) as pool:
            for done in [pool.submit(work, row, seed) for row, seed in todo]:
                done.result()
    names = [name for row in ROWS for name in (row.name, row.baseline) if name]
    write_report({name: read(name) for name in names})


if __name__ == "__main__":
    main()

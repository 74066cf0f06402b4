"""Train the rows of docs/results.md, evaluate each model once on test data, and record the metrics.

    python benchmarks/figures/run.py                             # all rows; days on one core
    python benchmarks/figures/run.py multi30k-en-de --jobs 1     # one row
    python benchmarks/figures/run.py sst2:2                      # one seed of a row
    python benchmarks/figures/run.py --report                    # only write docs/results.md from the records

Models are written to the folder `figures` under HEEDFUL_RUNS (default: the user's cache directory); an interrupted
training resumes. Each training uses one thread unless its recipe sets more, and `--jobs` of them run at a time.
Records are in benchmarks/figures/records, one file per row.
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
from rows import BY_NAME, ROWS, Row, teacher_command, train_command

from heedful.config import load_recipe
from heedful.data.paths import runs_folder

ROOT = Path(__file__).parents[2]
RECORDS = Path(__file__).parent / "records"
MODELS = runs_folder().absolute() / "figures"
HEEDFUL = [sys.executable, "-m", "heedful"]
ENVIRONMENT = {
    **os.environ,
    "HEEDFUL_RUNS": str(MODELS.parent),
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "NO_COLOR": "1",
}
_record_lock = Lock()


def expand(command: Sequence[str]) -> list[str]:
    """Replace $HEEDFUL_RUNS and $HEEDFUL_DATA in a command."""
    folders = {name: ENVIRONMENT.get(name, "") for name in ("HEEDFUL_RUNS", "HEEDFUL_DATA")}
    expanded = list(command)
    for name, folder in folders.items():
        expanded = [part.replace(f"${name}", folder) for part in expanded]
    return expanded


def write_teacher_outputs(row: Row) -> None:
    """Translate the training sources with the row's teachers, unless the file exists."""
    path = MODELS / f"{row.name}.outputs"
    if path.exists():
        return
    draft = path.with_suffix(".draft")
    with draft.open("w") as file:
        command = ["nice", *HEEDFUL, *expand(teacher_command(row))]
        subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, check=True, stdout=file)
    draft.rename(path)


def train(row: Row, seed: int) -> None:
    MODELS.mkdir(parents=True, exist_ok=True)
    if row.teachers:
        write_teacher_outputs(row)
    if row.prepare:
        subprocess.run([sys.executable, Path(__file__).parent / row.prepare], cwd=ROOT, env=ENVIRONMENT, check=True)
    command = ["nice", *HEEDFUL, *expand(train_command(row, seed))]
    with (MODELS / f"{row.folder}-{seed}.log").open("a") as log:
        subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, check=True, stdout=log, stderr=log)


def evaluate_seeds(row: Row, seeds: Sequence[int]) -> dict[str, Any]:
    """Return the test metrics of one model, or of an ensemble of several seeds."""
    return evaluate_models([MODELS / f"{row.folder}-{seed}" for seed in seeds], row.metrics, expand(row.test_files))


def evaluate_models(folders: Sequence[Path], metrics: Sequence[str], files: Sequence[str] = ()) -> dict[str, Any]:
    """Return what `heedful evaluate` reports for a model or an ensemble on test data."""
    options = [part for folder in folders for part in ("-m", str(folder))]
    options += [part for metric in metrics for part in ("--metric", metric)]
    options += [part for file in files for part in ("--data", file)] or ["--split", "test"]
    process = subprocess.run(
        [*HEEDFUL, "evaluate", *options, "--json"],
        cwd=ROOT,
        env=ENVIRONMENT,
        check=True,
        capture_output=True,
        text=True,
    )
    values = json.loads(process.stdout)["metrics"]
    return {
        name: {"value": metric["value"], "signature": metric["signature"]}
        for name, metric in zip(metrics, values, strict=False)
    }


def git_commit() -> str:
    process = subprocess.run(["git", "describe", "--always"], cwd=ROOT, capture_output=True, text=True)
    return process.stdout.strip()


def make_record(row: Row, seed: int) -> dict[str, Any]:
    """Return command, cost and test metrics of one trained model."""
    folder = MODELS / f"{row.folder}-{seed}"
    card = json.loads((folder / "model.json").read_text())
    log = folder / "metrics.jsonl"  # missing for models without training steps
    reports = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    last = reports[-1] if reports else {"seconds": 0.0, "step": 0}
    return {
        "seed": seed,
        "command": " ".join(["heedful", *train_command(row, seed)]),
        **({"before": " ".join(["heedful", *teacher_command(row)])} if row.teachers else {}),
        "minutes": round(last["seconds"] / 60, 1),
        "threads": load_recipe(folder / "recipe.toml").recipe.training.threads or 1,
        "steps": last["step"],
        "parameters": card["parameters"],
        "valid": card.get("metrics", card.get("figures")),
        "test": evaluate_seeds(row, (seed,)),
        "commit": git_commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def read_record(name: str) -> dict[str, Any]:
    path = RECORDS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {"runs": []}


def write_record(name: str, record: dict[str, Any]) -> None:
    RECORDS.mkdir(exist_ok=True)
    (RECORDS / f"{name}.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def run_seed(row: Row, seed: int) -> None:
    """Train and evaluate one seed of a row, unless its record exists."""
    if any(run["seed"] == seed for run in read_record(row.name)["runs"]):
        return
    train(row, seed)
    run = make_record(row, seed)
    with _record_lock:
        record = read_record(row.name)
        record["runs"] = sorted([*record["runs"], run], key=lambda r: r["seed"])
        write_record(row.name, record)
    metrics = "  ".join(f"{name} {metric['value']:.2f}" for name, metric in run["test"].items())
    print(f"{row.name} {seed}: {metrics}  ({run['minutes']} min)", flush=True)
    _evaluate_ensemble(row)


def _evaluate_ensemble(row: Row) -> None:
    """Record the ensemble of all seeds once the last of them is trained."""
    with _record_lock:
        record = read_record(row.name)
    seeds = tuple(run["seed"] for run in record["runs"])
    if not row.ensemble or seeds != row.seeds or "ensemble" in record:
        return
    record["ensemble"] = {"seeds": seeds, "test": evaluate_seeds(row, seeds), "commit": git_commit()}
    with _record_lock:
        write_record(row.name, record)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rows", nargs="*", help="row names, or NAME:SEED; default: all")
    parser.add_argument("--jobs", type=int, default=2, help="number of trainings at a time, one thread each")
    parser.add_argument("--report", action="store_true", help="only write docs/results.md")
    arguments = parser.parse_args()
    if not arguments.report:
        names = [name.partition(":") for name in arguments.rows] or [(row.name, "", "") for row in ROWS]
        for name, _, _ in names:
            if name not in BY_NAME:
                parser.error(f"no row named {name}; known: {', '.join(BY_NAME)}")
        jobs = [
            (BY_NAME[name], number)
            for name, _, seed in names
            for number in ((int(seed),) if seed else BY_NAME[name].seeds)
        ]
        with ThreadPoolExecutor(arguments.jobs) as pool:
            for future in [pool.submit(run_seed, row, seed) for row, seed in jobs]:
                future.result()
    names = [name for row in ROWS for name in (row.name, row.baseline) if name]
    write_report({name: read_record(name) for name in names})


if __name__ == "__main__":
    main()

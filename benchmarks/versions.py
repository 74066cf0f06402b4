"""Compare the speed of two checkouts, for example before and after a change.

    python benchmarks/versions.py ../before . --rounds 15

Each checkout runs in a process of its own with one thread. The processes take turns, so other load on the machine
meets both, and processor time is measured, not wall time. Printed are the medians and the ratio of speeds with its
range. Kernels must be built in both checkouts (`pip install -e .`, or copy `kernels-*.so`).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

LINES = [
    "The black cat sleeps on the old chair.",
    "Where is the station?",
    "I would like a cup of tea and two sandwiches, please.",
    "My sister has been living in a small village near the sea for three years.",
] * 16
RECIPE = Path("recipes", "world-phrases.toml")
SETTINGS = ["training.max_steps=25", "data.world.train=3000", "training.threads=1", "data.world.valid=10"]


def train() -> None:
    """Run `heedful train` in this process; the command line is what both versions have in common."""
    from heedful.cli import main

    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["heedful", "train", str(RECIPE), *SETTINGS, "--out", str(Path(folder, "model"))]
        with contextlib.redirect_stderr(io.TextIOWrapper(io.BytesIO())), contextlib.suppress(SystemExit):
            main()


def worker() -> None:
    """Run the jobs whose names arrive on standard input, and print the processor seconds of each."""
    import torch

    import heedful

    torch.set_num_threads(1)
    model = heedful.load("en-fr")
    jobs: dict[str, Callable[[], object]] = {
        "greedy, 64 lines": lambda: model(LINES, beam=1),
        "beam 5, 32 lines": lambda: model(LINES[:32], beam=5),
        "one by one, 12 lines": lambda: [model(line, beam=1) for line in LINES[:12]],
        "trace, 4 lines": lambda: [model.trace(line) for line in LINES[:4]],
        "train, 25 steps": train,
    }
    print(json.dumps(list(jobs)), flush=True)
    for line in sys.stdin:
        start = time.process_time()
        with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
            jobs[line.rstrip("\n")]()
        print(time.process_time() - start, flush=True)


def start_worker(checkout: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).resolve()), "--worker"]
    return subprocess.Popen(
        command, cwd=checkout, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def run_job(process: subprocess.Popen[str], job: str) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    print(job, file=process.stdin, flush=True)
    return float(process.stdout.readline())


def compare(before: Path, after: Path, rounds: int) -> None:
    processes = [start_worker(checkout.resolve()) for checkout in (before, after)]
    names = [json.loads(process.stdout.readline()) for process in processes if process.stdout]
    print("| work | before, s | after, s | speed after / before (range) |\n|---|---|---|---|")
    for job in names[-1]:
        for process in processes:
            run_job(process, job)  # warm-up
        seconds: list[list[float]] = [[], []]
        for turn in range(rounds):
            for which in (0, 1) if turn % 2 == 0 else (1, 0):
                seconds[which].append(run_job(processes[which], job))
        old, new = map(statistics.median, seconds)
        ratios = [b / a for b, a in zip(*seconds, strict=True)]
        middle = statistics.median(ratios)
        print(f"| {job} | {old:.3f} | {new:.3f} | {middle:.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |", flush=True)
    for process in processes:
        process.communicate()


if __name__ == "__main__":
    if sys.argv[1:] == ["--worker"]:
        worker()
    else:
        parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("before", type=Path)
        parser.add_argument("after", type=Path)
        parser.add_argument("--rounds", type=int, default=15)
        arguments = parser.parse_args()
        compare(arguments.before, arguments.after, arguments.rounds)

"""Training runs in separate processes, so that the peak memory of each can be measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from heedful.analysis.variants import Budget
from heedful.errors import TrainingError
from heedful.tasks.base import Variant

COMMAND = (sys.executable, "-m", "heedful", "train")
COST_FILE = "cost.json"
N_LINES = 6  # of a failed training's stderr


class TrainingJob(NamedTuple):
    """One training run: a variant, its seed, and the model folder."""

    variant: Variant
    seed: int
    folder: Path


class TrainingPool:
    """Runs `heedful train` for several jobs at once; if one fails, the others are stopped and can be resumed."""

    def __init__(self, recipe: Path, budget: Budget, parallel_jobs: int) -> None:
        self.recipe, self.budget, self.parallel_jobs = recipe, budget, parallel_jobs
        self.recipe_text = recipe.read_bytes()
        self.running: set[subprocess.Popen[str]] = set()
        self.lock, self.stopped = Lock(), False
        self.environment = dict(os.environ)
        if parallel_jobs > 1:  # by default, each would use all cores
            self.environment.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // parallel_jobs)))

    def run(self, jobs: Sequence[TrainingJob]) -> Iterator[TrainingJob]:
        """Train all jobs; yield each when it is done."""
        with ThreadPoolExecutor(self.parallel_jobs) as pool:
            futures = {pool.submit(self.train, job): job for job in jobs}
            try:
                for future in as_completed(futures):
                    future.result()
                    yield futures[future]
            except BaseException:
                self.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def stop(self) -> None:
        """Terminate all running processes; each saves a checkpoint."""
        with self.lock:
            self.stopped = True
            for process in self.running:
                process.terminate()

    def train(self, job: TrainingJob) -> None:
        """Train one job, or resume it; does nothing if its folder holds the trained model."""
        if self.recipe.read_bytes() != self.recipe_text:
            raise TrainingError(
                f"{self.recipe} has changed since the comparison started, so variants would not be comparable;"
                " restore it, and run the same command again to resume"
            )
        self._run_process(job)

    def _run_process(self, job: TrainingJob) -> None:
        overrides = [*job.variant.overrides, f"training.seed={job.seed}", *self.budget.overrides]
        command = [*COMMAND, str(self.recipe), *overrides, "training.keep_best=true", "--out", str(job.folder)]
        with self.lock:
            if self.stopped:  # this job was taken up just before the others were stopped
                return
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.environment
            )
            self.running.add(process)
        assert process.stderr is not None
        with process.stderr:
            stderr = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # wait4 has reaped it: Popen must not wait again
        with self.lock:
            self.running.discard(process)
        if process.returncode:
            with suppress(OSError):  # leaves a folder that already holds something
                job.folder.parent.rmdir()
            last_lines = "\n".join(stderr.strip().splitlines()[-N_LINES:])
            raise TrainingError(f"training of {job.variant.name}, seed {job.seed}, failed:\n{last_lines}")
        cost = job.folder / COST_FILE
        if not cost.is_file():
            cost.write_text(json.dumps({"peak_memory_mb": usage.ru_maxrss / 1024}) + "\n", encoding="utf-8")

"""The parts of a job in processes of this machine. A process that dies is replaced, and its part computed again."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from heedful.batch.job import Job, run_part
from heedful.batch.parts import Part
from heedful.errors import DataError

MAX_DEATHS = 3  # of processes, one after another, without a part finished between them
OnDone = Callable[[dict[str, Any]], None]


def run_local(job: Job, parts: Sequence[Part], digest: str, workers: int, on_done: OnDone) -> None:
    """Compute all parts; `on_done` is called with the record of each."""
    remaining, deaths = list(parts), 0
    while remaining:
        before = len(remaining)
        try:
            _run_pool(job, remaining, digest, min(workers, len(remaining)), on_done)
        except BrokenProcessPool:
            deaths = deaths + 1 if len(remaining) == before else 1
            if deaths > MAX_DEATHS:
                raise DataError(
                    f"a process died {deaths} times (killed, or out of memory?) at {remaining[0].path} or one of the"
                    f" {len(remaining) - 1:,} parts after it; try fewer --workers; the same command goes on"
                ) from None


def _run_pool(job: Job, remaining: list[Part], digest: str, workers: int, on_done: OnDone) -> None:
    """Compute parts and remove from the list what is done."""
    context = multiprocessing.get_context("spawn")  # a fork would share the threads of torch
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_use_one_thread)
    try:
        futures = {pool.submit(run_part, job, part, digest): part for part in remaining}
        for future in as_completed(futures):
            on_done(future.result())
            remaining.remove(futures[future])
    except BaseException:  # also Ctrl-C: do not wait for parts that have not started
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _use_one_thread() -> None:
    import signal

    import torch

    torch.set_num_threads(1)  # of this process, which exists for this job
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the first process's, which ends the others

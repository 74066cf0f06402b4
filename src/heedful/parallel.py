"""Runs a function on many items in a thread pool; progress callbacks."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch

OnProgress = Callable[[int], None]  # receives the number of items done since the last call


def no_progress(count: int) -> None:
    """Ignore progress."""


def available_cpus() -> int:
    """Return the number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_in_threads(work: Callable[[int], None], items: Sequence[int], threads: int) -> None:
    """Call `work` on every item in a pool of threads; torch uses one thread inside each."""
    threads = min(threads, len(items))
    if threads <= 1:
        for item in items:
            work(item)
        return
    torch_threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            for future in [pool.submit(work, item) for item in items]:
                future.result()
    finally:
        torch.set_num_threads(torch_threads)

"""Runs a function on many items in a thread pool, with torch's threads limited there and nowhere else; callbacks.

`torch.set_num_threads` changes a number of the whole process. Here the limits of single threads are set in the OpenMP
and MKL libraries that torch has loaded, so that nothing outside a pool changes, not even while it runs. Before a fork
OpenMP's idle threads are ended: they would not live on in the child, which would wait for them for ever.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

OnProgress = Callable[[int], None]  # receives the number of items done since the last call
_SOFT_PAUSE = 1  # omp_pause_soft


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
    import torch  # slow to import, and most users of this module only count processors

    torch_threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=limit_torch_threads, initargs=(1,)) as pool:
            futures = [pool.submit(work, item) for item in items]
            try:
                for future in futures:
                    future.result()
            except BaseException:  # also Ctrl-C: do not wait for work that has not started
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    finally:
        if not _thread_setters():
            torch.set_num_threads(torch_threads)


def limit_torch_threads(count: int) -> None:
    """Let torch use `count` threads for what the calling thread computes; other threads keep their number.

    Where torch's OpenMP library is not accessible (only on Linux it is), the number of the process is changed.
    """
    import torch

    torch.get_num_threads()  # torch sets the number of a thread at its first use, which must not come after ours
    for set_number in _thread_setters() or (torch.set_num_threads,):
        set_number(count)


def openmp_libraries() -> list[str]:
    """Return the files of the GNU OpenMP libraries in this process; torch brings its own."""
    return _mapped_files("libgomp")


@cache
def _thread_setters() -> tuple[Callable[[int], object], ...]:
    """Return the functions that set the number of threads for what the calling thread runs in parallel."""
    setters: list[Callable[[int], object]] = []
    for path in openmp_libraries():
        setters.append(ctypes.CDLL(path).omp_set_num_threads)
    for path in _mapped_files("libtorch_cpu"):
        if hasattr(library := ctypes.CDLL(path), "MKL_Set_Num_Threads_Local"):  # MKL has a number of its own
            setters.append(library.MKL_Set_Num_Threads_Local)
    return tuple(setters)


def _mapped_files(name: str) -> list[str]:
    """Return the loaded libraries whose file name starts with `name`."""
    maps = Path("/proc/self/maps")
    return sorted(set(re.findall(rf"/\S*/{name}[^/\s]*", maps.read_text()))) if maps.exists() else []


def _end_idle_threads() -> None:
    """End the threads that OpenMP keeps for the calling thread; the next parallel loop starts new ones."""
    for path in openmp_libraries():
        library = ctypes.CDLL(path)
        if hasattr(library, "omp_pause_resource_all"):
            library.omp_pause_resource_all(_SOFT_PAUSE)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_end_idle_threads)

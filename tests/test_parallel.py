"""Thread pools and forks leave torch's number of threads alone, and a forked process computes."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator

import pytest
import torch

from fresh_python import run_python
from heedful.parallel import limit_torch_threads, run_in_threads

linux = pytest.mark.skipif(sys.platform != "linux", reason="torch's OpenMP library is accessible on Linux only")


def torch_threads() -> tuple[int, str]:
    """What the calling thread uses, and the numbers of OpenMP and MKL for the process."""
    lines = torch.__config__.parallel_info().splitlines()
    return torch.get_num_threads(), "\n".join(line for line in lines if "get_max_threads" in line)


def in_new_thread() -> tuple[int, str]:
    numbers: list[tuple[int, str]] = []
    thread = threading.Thread(target=lambda: numbers.append(torch_threads()))
    thread.start()
    thread.join()
    return numbers[0]


@pytest.fixture
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@linux
@pytest.mark.usefixtures("three_threads")
def test_torch_uses_one_thread_inside_a_pool_and_all_of_them_elsewhere_at_the_same_time() -> None:
    before, seen, entered, released = torch_threads(), list[int](), threading.Event(), threading.Event()

    def work(item: int) -> None:
        seen.append(torch_threads()[0])
        entered.set()
        assert released.wait(60)

    pool = threading.Thread(target=run_in_threads, args=(work, range(2), 2))
    pool.start()
    try:
        assert entered.wait(60)
        assert torch_threads() == before
        assert in_new_thread() == before
    finally:
        released.set()
        pool.join()
    assert seen == [1, 1]
    assert torch_threads() == before
    assert in_new_thread() == before


@pytest.mark.usefixtures("three_threads")
def test_a_pool_whose_work_fails_leaves_the_number_of_threads() -> None:
    before = torch_threads()

    def fail(item: int) -> None:
        raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item 0"):
        run_in_threads(fail, range(3), 2)
    assert torch_threads() == before
    assert in_new_thread() == before


def test_work_that_has_not_started_is_dropped_after_an_error() -> None:
    """Ctrl-C waited for all batches."""
    started: list[int] = []
    both = threading.Barrier(2)

    def work(item: int) -> None:
        started.append(item)
        if item < 2:
            both.wait(timeout=60)
            raise KeyboardInterrupt
        time.sleep(0.001)  # so that the error is noticed before all are done, also on a busy machine

    with pytest.raises(KeyboardInterrupt):
        run_in_threads(work, range(2_000), threads=2)
    assert len(started) < 2_000


@linux
def test_a_limit_holds_for_the_calling_thread_only() -> None:
    before, inside = torch_threads(), list[int]()

    def limited() -> None:
        limit_torch_threads(5)
        torch.randn(300, 300) @ torch.randn(300, 300)
        inside.append(torch.get_num_threads())

    thread = threading.Thread(target=limited)
    thread.start()
    thread.join()
    assert inside == [5]
    assert torch_threads() == before
    assert in_new_thread() == before


FORK = """
import os, time
import torch
from heedful import kernels, parallel

def compute():
    logits, targets = torch.randn(64, 5_000), torch.arange(64)
    torch.mm(torch.randn(400, 400), torch.randn(400, 400))
    return kernels.cross_entropy(logits, targets, 0.1)[0].sum().item()

torch.set_num_threads(2)
compute()
child = os.fork()
if child == 0:
    threads = torch.get_num_threads()
    compute()
    parallel.run_in_threads(lambda _: compute(), range(4), 2)
    os._exit(threads)
deadline = time.monotonic() + 60
while time.monotonic() < deadline:
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        print("the child had", os.waitstatus_to_exitcode(status), "threads")
        break
    time.sleep(0.01)
else:
    os.kill(child, 9)
    os.waitpid(child, 0)
    print("the child hangs")
print("the parent has", torch.get_num_threads())
compute()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_process_that_is_forked_after_parallel_loops_computes_with_as_many_threads() -> None:
    done = run_python(FORK, OMP_NUM_THREADS="2")
    assert done.stdout.splitlines() == ["the child had 2 threads", "the parent has 2"], done.stderr

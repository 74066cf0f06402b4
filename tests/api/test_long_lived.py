"""A process that serves a model for long: its memory stays flat, and a child that it forks computes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import small_models
from fresh_python import run_python

MEGABYTES = 6.0  # 300 calls that keep 20 kB each
MEMORY = f"""
import gc, sys
from pathlib import Path
import heedful

def memory():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

def call(count):
    for number in range(count):
        model([f"the red cat sees {{number}} dogs", "a dog"], max_length=6, beam=1 + number % 3)
        model.trace("the cat", max_length=4, what_if=number % 5 == 0)

model = heedful.load(sys.argv[1])
call(100)
before = memory()
call(300)
print(memory() - before < {MEGABYTES}, memory() - before)
"""
FORK = """
import os, sys, time
import heedful

model = heedful.load(sys.argv[1])
lines = ["the red cat sees a dog"] * 40
expected = model(lines, max_length=6)
child = os.fork()
if child == 0:
    os._exit(7 if model(lines, max_length=6) == expected else 1)
deadline = time.monotonic() + 60
while time.monotonic() < deadline:
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        print(os.waitstatus_to_exitcode(status))
        break
    time.sleep(0.01)
else:
    os.kill(child, 9)
    print("the child hangs")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("m")
    small_models.random_model_folder(path, small_models.small_preset("cgru"), kind="bpe")
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_memory_of_many_calls_is_flat(folder: Path) -> None:
    done = run_python(MEMORY, str(folder), OMP_NUM_THREADS="2")
    assert done.stdout.startswith("True"), done.stdout + done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_loaded_model_answers_in_a_forked_process(folder: Path) -> None:
    """Its threads do not live on in the child, which waited for them for ever."""
    done = run_python(FORK, str(folder), OMP_NUM_THREADS="2")
    assert done.stdout == "7\n", done.stdout + done.stderr

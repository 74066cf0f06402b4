"""Measure the time from a command to the first line of its output, for one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import paths
from client import WorkerError


def start_heedful(model: str) -> float:
    """Return the seconds that `heedful translate` takes."""
    line = paths.read_lines(paths.TEST, paths.SOURCE, 1)[0]
    command = [str(Path(sys.executable).parent / "heedful"), "translate", "-m", str(paths.model_folder(model))]
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line + "\n")
    process.stdin.close()
    output = process.stdout.readline()
    seconds = time.perf_counter() - started
    process.wait()
    if not output.strip():
        raise WorkerError("heedful translate gave no output")
    return seconds


def start_onmt(model: str) -> float:
    """Return the seconds that `onmt_translate` takes; it writes a file, which is polled a hundred times per second."""
    paths.SCRATCH.mkdir(parents=True, exist_ok=True)
    source, target = paths.SCRATCH / "one.en", paths.SCRATCH / "one.de"
    with paths.subword_file(paths.TEST, paths.SOURCE).open(encoding="utf-8") as file:
        source.write_text(file.readline(), encoding="utf-8")
    target.unlink(missing_ok=True)
    command = [str(paths.interpreter("onmt").parent / "onmt_translate"), "-model", str(paths.checkpoint(model))]
    command += ["-src", str(source), "-output", str(target), "-gpu", "-1", "-beam_size", "1"]
    environment = {**os.environ, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    while not (target.is_file() and target.stat().st_size):
        if process.poll() is not None and not target.is_file():
            raise WorkerError(f"onmt_translate ended with exit code {process.returncode}")
        time.sleep(0.01)
    seconds = time.perf_counter() - started
    process.wait()
    return seconds


MEASURE_START = {"heedful": start_heedful, "onmt": start_onmt}

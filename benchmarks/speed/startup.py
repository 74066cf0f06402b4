"""How long it takes from a command to the first line of its output, one sentence in."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import places
from talk import WorkerError


def start_heedful(model: str) -> float:
    line = places.lines(places.TEST, places.SOURCE, 1)[0]
    command = [str(Path(sys.executable).parent / "heedful"), "translate", "-m", str(places.converted(model))]
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line + "\n")
    process.stdin.close()
    said = process.stdout.readline()
    seconds = time.perf_counter() - begun
    process.wait()
    if not said.strip():
        raise WorkerError("heedful translate said nothing")
    return seconds


def start_onmt(model: str) -> float:
    """It writes to a file: looked at a hundred times a second."""
    places.SCRATCH.mkdir(parents=True, exist_ok=True)
    source, target = places.SCRATCH / "one.en", places.SCRATCH / "one.de"
    with places.cut(places.TEST, places.SOURCE).open(encoding="utf-8") as file:
        source.write_text(file.readline(), encoding="utf-8")
    target.unlink(missing_ok=True)
    command = [str(places.python("onmt").parent / "onmt_translate"), "-model", str(places.checkpoint(model))]
    command += ["-src", str(source), "-output", str(target), "-gpu", "-1", "-beam_size", "1"]
    environment = {**os.environ, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
    quiet = subprocess.DEVNULL
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment)
    while not (target.is_file() and target.stat().st_size):
        if process.poll() is not None and not target.is_file():
            raise WorkerError(f"onmt_translate ended with {process.returncode}")
        time.sleep(0.01)
    seconds = time.perf_counter() - begun
    process.wait()
    return seconds


START = {"heedful": start_heedful, "onmt": start_onmt}

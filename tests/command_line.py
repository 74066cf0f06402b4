"""Running the program `heedful`: in a process of its own through its real entry point, or in this process."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from fork_server import run_forked
from heedful.cli import main
from heedful.training.metrics_log import MetricsLog
from heedful.training.types import Report

HEEDFUL = Path(sys.executable).parent / "heedful"
RECIPES = Path(__file__).parent.parent / "recipes"
FORKS = hasattr(os, "fork")  # not on Windows
Completed = subprocess.CompletedProcess[str]


def heedful(*words: str | Path, stdin: str | bytes = "", fork: bool = FORKS, **env: str) -> Completed:
    """Run the program in a process of its own, forked or (`fork=False`, for tests of the start itself) new."""
    command, environment = [str(HEEDFUL), *map(str, words)], {**os.environ, **env}
    data = stdin.encode() if isinstance(stdin, str) else stdin
    if fork:
        code, stdout, stderr = run_forked(command, data, environment)
    else:
        process = subprocess.run(command, input=data, capture_output=True, env=environment, check=False)
        code, stdout, stderr = process.returncode, process.stdout, process.stderr
    return subprocess.CompletedProcess(command, code, stdout.decode("utf-8"), stderr.decode("utf-8"))


def refused(*words: str | Path, stdin: str | bytes = "") -> str:
    """Return the error message of a user's mistake: exit status 2, no traceback, nothing on stdout."""
    return _error(heedful(*words, stdin=stdin))


def here(*words: str | Path, stdin: str | bytes = "") -> Completed:
    """Run the program in this process, which is faster."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        patch.object(sys, "argv", ["heedful", *map(str, words)]),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(data))),
        patch.object(sys, "stdout", out),
        patch.object(sys, "stderr", err),
        patch.dict(os.environ),
        pytest.raises(SystemExit) as end,
    ):
        main()
    texts = []
    for stream in (out, err):
        stream.flush()
        stream.seek(0)
        texts.append(stream.read())
    return subprocess.CompletedProcess(words, int(end.value.code or 0), *texts)


def complaint(*words: str | Path, stdin: str | bytes = "") -> str:
    """Return the error message of a user's mistake, as `refused` does, in this process."""
    return _error(here(*words, stdin=stdin))


def stopped(*words: str | Path) -> None:
    """Run a training and stop it (Ctrl-C) after its first validation; its checkpoint is kept."""
    written = MetricsLog.write

    def write(log: MetricsLog, report: Report) -> None:
        written(log, report)
        signal.raise_signal(signal.SIGINT)

    with patch.object(MetricsLog, "write", write):
        done = here(*words)
    assert "stopped at step" in done.stderr, done.stderr


def _error(done: Completed) -> str:
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr

"""The benchmark's side of the connection to a worker process (`protocol.py` is the worker's side)."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import paths


class WorkerError(RuntimeError):
    """A worker reported an error or ended."""


class WorkerClient:
    """A worker process."""

    def __init__(self, name: str, command: list[str], threads: int) -> None:
        self.name = name
        logs = paths.FOLDER / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        self._log = (logs / f"{name}.log").open("w", encoding="utf-8")
        environment = {**os.environ, "HEEDFUL_BENCH": str(paths.FOLDER)}
        if name != "ct2":  # its own options set its threads; these variables would override them
            environment |= {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
            env=environment,
        )

    def request(self, command: str, **options: Any) -> dict[str, Any]:
        """Send a command and return the worker's reply."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps({"command": command, **options}), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise WorkerError(f"{self.name} ended during {command}; see {self._log.name}")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise WorkerError(f"{self.name} failed to {command}:\n{reply['error']}")
        return reply

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.stdin.write('{"command": "quit"}\n')  # type: ignore[union-attr]
            self._process.stdin.close()  # type: ignore[union-attr]
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

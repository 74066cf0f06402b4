"""The conductor's end of the line to a worker (`protocol.py` has the other one)."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import places


class WorkerError(RuntimeError):
    """A worker answered with an error, or not at all."""


class Talk:
    """A worker process."""

    def __init__(self, name: str, command: list[str], threads: int) -> None:
        self.name = name
        logs = places.CACHE / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        self._log = (logs / f"{name}.log").open("w", encoding="utf-8")
        environment = {**os.environ, "HEEDFUL_BENCH": str(places.CACHE)}
        if name != "ct2":  # it is told by its own options; these would win over them
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

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps({"do": do, **more}), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise WorkerError(f"{self.name} ended while asked to {do}; see {self._log.name}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(f"{self.name} could not {do}:\n{answer['error']}")
        return answer

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.stdin.write('{"do": "quit"}\n')  # type: ignore[union-attr]
            self._process.stdin.close()  # type: ignore[union-attr]
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

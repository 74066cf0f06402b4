"""A server for tests: `heedful serve` in a process of its own, called over real sockets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx

from command_line import HEEDFUL

START_SECONDS = 120.0
TEXTS = ["The cat sleeps.", "A small dog eats the fish in the garden.", "I am happy."]


class Server:
    """A running server and its log."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process, self.lines = process, list[str]()
        self.address = self._wait_for_address()
        self.reader = threading.Thread(target=self._read_log, daemon=True)
        self.reader.start()
        self.client = httpx.Client(base_url=self.address, timeout=60)

    def post(self, path: str, content: Any = None, **options: Any) -> httpx.Response:
        """Send JSON."""
        return self.client.post(path, json=content, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.client.get(path, **options)

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def log(self) -> list[dict[str, Any]]:
        """Return the lines of the log that are JSON."""
        return [json.loads(line) for line in self.lines if line.startswith("{")]

    def wait_until(self, condition: Any) -> None:
        """Wait for something that has to come; a test that waits forever fails."""
        end = time.monotonic() + START_SECONDS
        while not condition():
            assert time.monotonic() < end, "\n".join(self.lines[-20:])
            time.sleep(0.02)

    def wait_until_ready(self) -> None:
        self.wait_until(lambda: self.get("/ready").status_code == 200)

    def stop(self, sign: int = signal.SIGTERM) -> int:
        """End the process and return its exit status."""
        self.client.close()
        self.process.send_signal(sign)
        return self.process.wait(START_SECONDS)

    def _wait_for_address(self) -> str:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if line.startswith("listening on "):
                return line.split()[2]
        raise AssertionError("".join(self.lines))

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)


@contextmanager
def serving(*options: str | Path, **environment: str) -> Iterator[Server]:
    """Run `heedful serve` on a free port."""
    command = [str(HEEDFUL), "serve", "--port", "0", *map(str, options)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}) as process:
        server = None
        try:
            server = Server(process)
            server.wait_until_ready()
            yield server
        finally:
            if server is not None:
                server.client.close()
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
            if server is not None:
                server.reader.join()

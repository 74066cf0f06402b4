"""Clients of `benchmarks/serve.py`: plain asyncio, because on two cores the time of the clients is the server's."""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

WORDS = (
    "the cat sleeps on an old chair and my brother reads a big book about dogs in small house near river when it rains"
).split()
JSON = {"content-type": "application/json"}
START_SECONDS = 300.0


class Answer(NamedTuple):
    """A request and what became of it."""

    line: str
    status: int
    seconds: float
    text: str
    retry_after: bool


class Load(NamedTuple):
    """What some clients saw in one run."""

    clients: int
    per_second: float
    median_ms: float
    p99_ms: float
    statuses: Counter[int]
    without_retry_after: int  # of the answers 503
    wrong: int  # texts that differ from those of a request by itself
    cpu_ms: float  # of the server, per answer
    megabytes: list[float]  # resident memory of the server, at equal distances


def make_lines(count: int) -> list[str]:
    """Return sentences of 1 to 25 words."""
    rng = random.Random(1)
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 25))).capitalize() + "." for _ in range(count)]


class Server:
    """A server process that has loaded its model."""

    def __init__(self, process: subprocess.Popen[str], port: int, options: dict[str, object]) -> None:
        self.process, self.port, self.options = process, port, options
        self.expected: dict[str, str] = {}

    def ask(self, lines: Sequence[str]) -> None:
        """Store the answer of every line to a request by itself."""
        for line in lines:
            body = json.dumps({"inputs": [line], "options": self.options}).encode()
            request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/translate", body, JSON)
            with urllib.request.urlopen(request, timeout=START_SECONDS) as answer:  # noqa: S310
                self.expected[line] = json.load(answer)["outputs"][0]["text"]

    def load(self, clients: int, seconds: float) -> Load:
        """Send requests of so many clients at once, each one after the other."""
        return asyncio.run(self._load(clients, seconds))

    async def _load(self, clients: int, seconds: float) -> Load:
        answers: list[Answer] = []
        begin, cpu, megabytes = time.monotonic(), self._cpu_seconds(), [self._megabytes()]
        sending = asyncio.gather(*(self._client(number, begin + seconds, answers) for number in range(clients)))
        for quarter in range(1, 5):
            await asyncio.sleep(max(0.0, begin + seconds * quarter / 4 - time.monotonic()))
            megabytes.append(self._megabytes())
        await sending
        spent = time.monotonic() - begin
        done = [answer for answer in answers if answer.status == 200]
        times = sorted(answer.seconds for answer in done)
        return Load(
            clients,
            len(done) / spent,
            1e3 * statistics.median(times),
            1e3 * times[int(0.99 * (len(times) - 1))],
            Counter(answer.status for answer in answers),
            sum(answer.status == 503 and not answer.retry_after for answer in answers),
            sum(answer.text != self.expected[answer.line] for answer in done),
            1e3 * (self._cpu_seconds() - cpu) / len(done),
            megabytes,
        )

    async def _client(self, number: int, end: float, answers: list[Answer]) -> None:
        rng, lines = random.Random(number), list(self.expected)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        while time.monotonic() < end:
            line = rng.choice(lines)
            begin = time.monotonic()
            writer.write(self._request(line))
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            status = int(head.split(" ", 2)[1])
            content = json.loads(await reader.readexactly(int(head.partition("content-length: ")[2].split("\r\n")[0])))
            text = content["outputs"][0]["text"] if status == 200 else ""
            answers.append(Answer(line, status, time.monotonic() - begin, text, "retry-after: " in head))
            if status == 503:
                await asyncio.sleep(rng.uniform(0.5, 1.0))
        writer.close()

    def _request(self, line: str) -> bytes:
        body = json.dumps({"inputs": [line], "options": self.options}).encode()
        head = f"POST /v1/translate HTTP/1.1\r\nHost: localhost:{self.port}\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def _cpu_seconds(self) -> float:
        """Return the processor time of the process, of all of its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _megabytes(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1e3


@contextmanager
def serving(*command: str | Path, options: dict[str, object] | None = None) -> Iterator[Server]:
    """Start a server, and wait until it is ready; `command` follows the interpreter, `options` those of decoding."""
    words = [sys.executable, *map(str, command)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = next((line for line in process.stderr if line.startswith("listening on ")), "")
        if not address:
            raise SystemExit(f"{' '.join(words)}: ended with status {process.wait()}")
        drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        try:
            server = Server(process, int(address.split()[2].rpartition(":")[2]), options or {})
            _wait_until_ready(server)
            yield server
        finally:
            process.terminate()
            process.wait()
            drain.terminate()


def _wait_until_ready(server: Server) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{server.port}/ready")
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not become ready")

"""Load on `heedful serve` over loopback: one client one by one, against many at once, interleaved in one run.

    python benchmarks/serve.py --clients 64 --rounds 3 --seconds 20
    python benchmarks/serve.py --int8 ...
    python benchmarks/serve.py --clients 256 --rounds 1 --seconds 60 --queue 120

Sentences have 1 to 25 words. Every answer is compared with that of a request by
itself, so that order and texts are checked.
The client is plain asyncio, because on two cores its time is the server's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

WORDS = (
    "the cat sleeps on an old chair and my brother reads a big book about dogs in small house near river when it rains"
).split()


def make_lines(count: int) -> list[str]:
    """Return sentences of mixed lengths."""
    rng = random.Random(1)
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 25))).capitalize() + "." for _ in range(count)]


def make_request(port: int, line: str) -> bytes:
    """Return the bytes of a request."""
    body = json.dumps({"inputs": [line]}).encode()
    head = f"POST /v1/translate HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def client(
    port: int, lines: list[str], number: int, end: float, results: list[tuple[str, int, float, str]]
) -> None:
    """Send one request after the other until the time is over."""
    rng = random.Random(number)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < end:
        line = rng.choice(lines)
        begin = time.monotonic()
        writer.write(make_request(port, line))
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        status = int(head.split(" ", 2)[1])
        length = int(head.partition("content-length: ")[2].split("\r\n")[0])
        content = json.loads(await reader.readexactly(length))
        text = content["outputs"][0]["text"] if status == 200 else str("retry-after: " in head)
        results.append((line, status, time.monotonic() - begin, text))
        if status == 503:
            await asyncio.sleep(rng.uniform(0.5, 1.0))
    writer.close()


async def load(
    port: int, lines: list[str], clients: int, seconds: float
) -> tuple[list[tuple[str, int, float, str]], float]:
    """Return every answer of some clients, and the seconds that it took."""
    results: list[tuple[str, int, float, str]] = []
    begin = time.monotonic()
    await asyncio.gather(*(client(port, lines, number, begin + seconds, results) for number in range(clients)))
    return results, time.monotonic() - begin


def memory(pid: int) -> float:
    """Return the resident memory of a process, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1e3


def describe(results: list[tuple[str, int, float, str]], seconds: float, expected: dict[str, str]) -> dict[str, Any]:
    """Return throughput, latencies and errors."""
    done = [row for row in results if row[1] == 200]
    times = sorted(row[2] for row in done)
    return {
        "per_second": len(done) / seconds,
        "median_ms": 1e3 * statistics.median(times),
        "p99_ms": 1e3 * times[int(0.99 * (len(times) - 1))],
        "statuses": dict(Counter(row[1] for row in results)),
        "without_retry_after": sum(row[1] == 503 and row[3] != "True" for row in results),
        "wrong": sum(row[3] != expected[row[0]] for row in done),
    }


def main() -> None:
    """Start a server, load it, and print a line per round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--queue", type=int, default=160)
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    flags = ["--int8"] if options.int8 else []
    program = [str(Path(sys.executable).parent / "heedful"), "serve", "-m", "en-fr", "--port", "0"]
    command = [*program, "--queue", str(options.queue), "--workers", str(options.workers), *flags]
    lines = make_lines(200)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        port = int(next(line for line in process.stderr if line.startswith("listening")).split()[2].rpartition(":")[2])
        drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/ready")
                break
            except OSError:
                time.sleep(0.2)
        expected: dict[str, str] = {}
        for line in lines:
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/v1/translate", json.dumps({"inputs": [line]}).encode()
            )
            request.add_header("content-type", "application/json")
            expected[line] = json.load(urllib.request.urlopen(request))["outputs"][0]["text"]  # noqa: S310
        ratios = []
        for number in range(options.rounds):
            single = describe(*asyncio.run(load(port, lines, 1, options.seconds / 2)), expected)
            many = describe(*asyncio.run(load(port, lines, options.clients, options.seconds)), expected)
            ratios.append(many["per_second"] / single["per_second"])
            record = {"round": number, "ratio": ratios[-1], "mb": memory(process.pid), "one": single, "many": many}
            print(json.dumps(record), flush=True)
        print(f"ratio: median {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}")
        process.terminate()
        process.wait()
        drain.terminate()


if __name__ == "__main__":
    main()

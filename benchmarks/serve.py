"""Load on `heedful serve`, and on CTranslate2 behind the same shell: one command for the table of serve.md.

    python benchmarks/serve.py                                    # everything, on an idle machine: about 10 minutes
    python benchmarks/serve.py --seconds 3 --print                # a short try, which changes no file
    python benchmarks/serve.py --only int8 float32 --print
    python benchmarks/serve.py --only endurance --print           # memory over 100,000 requests: about 5 minutes

Runs of a comparison are interleaved. Sentences have 1 to 25 words, beam 5. Every answer is compared with that of a
request by itself, so that order and texts are checked. Processor times hardly depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from serve_load import Load, Server, make_lines, serving

HERE = Path(__file__).parent
PAGE = HERE / "serve.md"
BEGIN, END = "<!-- begin: python benchmarks/serve.py -->", "<!-- end -->"
HEEDFUL = Path(sys.executable).parent / "heedful"
MANY, TOO_MANY, QUEUE, ENDURING = 64, 256, 160, 16
OUTPUT_TOKENS = 20  # of the Transformer, whose outputs never end by themselves
HEAD = (
    "| run | per s | ratio | target | median | p99 / median | answers | wrong | CPU per answer | memory |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


class Row(NamedTuple):
    """A line of the table."""

    name: str
    load: Load
    ratio: float | None = None
    target: str = ""

    def __str__(self) -> str:
        load = self.load
        answers = ", ".join(f"{count:,} x {status}" for status, count in sorted(load.statuses.items()))
        if load.without_retry_after:
            answers += f" ({load.without_retry_after} without Retry-After)"
        cells = [
            self.name,
            f"{load.per_second:.1f}",
            "" if self.ratio is None else f"{self.ratio:.2f}",
            self.target,
            f"{load.median_ms:.0f} ms",
            f"{load.p99_ms / load.median_ms:.2f}",
            answers,
            str(load.wrong),
            f"{load.cpu_ms:.2f} ms",
            f"{load.megabytes[0]:.0f} to {max(load.megabytes):.0f} MB",
        ]
        return f"| {' | '.join(cells)} |"


def served(model: str | Path, int8: bool, **options: object) -> tuple[list[str | Path], dict[str, object]]:
    """Return the command that serves a model of ours, and options of decoding."""
    flags = ["--int8"] if int8 else []
    return [HEEDFUL, "serve", "-m", model, "--port", "0", "--queue", str(QUEUE), *flags], options


def compare_with_one(name: str, int8: bool, target: str, lines: Sequence[str], seconds: float) -> Iterator[Row]:
    """Yield one client, many at once, and one client again."""
    command, options = served("en-fr", int8)
    with serving(*command, options=options) as server:
        server.ask(lines)
        before, many, after = (server.load(n, s) for n, s in ((1, seconds / 3), (MANY, seconds), (1, seconds / 3)))
        for load in (before, after):
            yield Row(f"{name}, one client", load)
        yield Row(
            f"{name}, {MANY} clients", many, many.per_second / fmean([before.per_second, after.per_second]), target
        )


def overload(lines: Sequence[str], seconds: float) -> Iterator[Row]:
    """Yield more clients than the queue has places."""
    command, options = served("en-fr", int8=True)
    with serving(*command, options=options) as server:
        server.ask(lines)
        server.load(MANY, seconds / 10)
        yield Row(f"int8, {TOO_MANY} clients, queue {QUEUE}", server.load(TOO_MANY, seconds))


def endurance(lines: Sequence[str], requests: int) -> Iterator[Row]:
    """Yield the sum of runs with very short outputs, of so many requests in all."""
    command, options = served("en-fr", True, method="greedy", max_length=2)
    with serving(*command, options=options) as server:
        server.ask(lines)
        loads = [server.load(ENDURING, 10.0)]
        while sum(load.statuses[200] for load in loads) < requests:
            loads.append(server.load(ENDURING, 10.0))
        total = loads[-1]._replace(
            statuses=sum((load.statuses for load in loads), Counter()),
            wrong=sum(load.wrong for load in loads),
            megabytes=[load.megabytes[-1] for load in loads],
        )
        yield Row(f"int8, {ENDURING} clients, outputs of 2 tokens", total)


def compare_with_ctranslate2(lines: Sequence[str], seconds: float) -> Iterator[Row]:
    """Yield a Transformer of ours, and the same one in CTranslate2 behind the same shell without a batcher."""
    script, options = HERE / "serve_ctranslate2.py", {"beam": 5, "max_length": OUTPUT_TOKENS}
    with tempfile.TemporaryDirectory() as folder:
        model, export = Path(folder) / "transformer", Path(folder) / "ctranslate2"
        subprocess.run([sys.executable, script, model, export, "--make"], check=True)
        for int8 in (True, False):
            flags = ["--int8"] if int8 else []
            ours, _ = served(model, int8)
            with (
                serving(*ours, options=options) as own,
                serving(script, model, export, *flags, options=options) as other,
            ):
                yield from _interleave("int8" if int8 else "float32", own, other, lines, seconds / 4)


def _interleave(name: str, own: Server, other: Server, lines: Sequence[str], seconds: float) -> Iterator[Row]:
    for server in (own, other):
        server.ask(lines)
    loads = [server.load(MANY, seconds) for server in (own, other, own, other)]
    for load in loads[1::2]:
        yield Row(f"Transformer {name}, CTranslate2, {MANY} clients", load)
    for load, beside in zip(loads[::2], loads[1::2], strict=True):
        ratio = load.per_second / beside.per_second
        yield Row(f"Transformer {name}, heedful, {MANY} clients", load, ratio, "at least 2")


def describe_machine() -> str:
    """Return when and on what the runs were made."""
    commit = subprocess.run(
        ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{time.strftime('%Y-%m-%d')}, commit {commit}, {cpus} processors, load average at the start {load:.1f}."


def main() -> None:
    """Make the runs, print a line per run, and write the table into serve.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the runs with many clients")
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--only", nargs="+", choices=("int8", "float32", "overload", "ctranslate2", "endurance"))
    parser.add_argument("--requests", type=int, default=100_000, help="of endurance, which runs only if it is named")
    parser.add_argument("--print", action="store_true", help="do not change serve.md")
    options = parser.parse_args()
    lines, seconds, machine = make_lines(options.sentences), options.seconds, describe_machine()
    parts: dict[str, Callable[[], Iterator[Row]]] = {
        "int8": lambda: compare_with_one("int8", True, "at least 5", lines, seconds),
        "float32": lambda: compare_with_one("float32", False, "at least 3", lines, seconds),
        "overload": lambda: overload(lines, seconds),
        "ctranslate2": lambda: compare_with_ctranslate2(lines, seconds),
        "endurance": lambda: endurance(lines, options.requests),
    }
    table = [HEAD]
    print(machine, HEAD, sep="\n", flush=True)
    for name in options.only or [part for part in parts if part != "endurance"]:
        for row in parts[name]():
            table.append(str(row))
            print(row, flush=True)
    if not options.print:
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        content = "\n".join([machine, "", *table])
        PAGE.write_text(f"{before}{BEGIN}\n\n{content}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()

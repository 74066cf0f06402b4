"""Measure `heedful batch`: rate, memory, and what is left of a job whose processes are killed, on a cluster of two.

    python benchmarks/batch.py                  # about half an hour; writes batch.md here; needs heedful[ray]
    python benchmarks/batch.py --lines 20000    # a shorter run

The cluster is two Ray nodes of one processor each on this machine. During the job an actor is killed (SIGKILL), then
the driver; the same command finishes the job, and its files are compared with those of one process.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
HEEDFUL = Path(sys.executable).parent / "heedful"
TOKEN = "HEEDFUL_BENCHMARK_BATCH"  # marks the processes of this benchmark: no other is ever killed
SUBJECTS = ["I", "you", "we", "they", "my sister", "the old man", "our teacher", "the children"]
VERBS = ["like", "see", "want", "buy", "found", "lost", "know", "remember"]
OBJECTS = ["the house", "a red car", "this book", "the train to Paris", "your friend", "some bread", "it", "the answer"]
ENDS = ["today", "in the morning", "again", "every day", "because it is late", "with a smile", "at home", "now"]
SEARCH = ("--beam", "1")


class Finished(NamedTuple):
    """A command that has ended: its seconds, and the peak memory of the largest process of this benchmark so far."""

    seconds: float
    peak_mb: float


def lines(count: int) -> Iterator[str]:
    """Yield different everyday sentences; after all combinations, with a number."""
    for number in itertools.count():
        for words in itertools.product(SUBJECTS, VERBS, OBJECTS, ENDS):
            if count == 0:
                return
            count -= 1
            yield " ".join(words) + (f" {number}." if number else ".")


def write_lines(path: Path, count: int) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines(count)), encoding="utf-8")
    return path


def run(*words: object, **options: object) -> Finished:
    """Run a command to its end."""
    started = time.perf_counter()
    subprocess.run([str(word) for word in words], check=True, stderr=subprocess.DEVNULL, **options)  # type: ignore[call-overload]
    return Finished(time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)


def batch(source: Path, out: Path, part_lines: int, *words: object) -> list[str]:
    command = [HEEDFUL, "batch", "translate", source, "--out", out, "--part-lines", part_lines, *SEARCH, *words]
    return [str(word) for word in command]


def marked_processes(name: str) -> list[int]:
    """Return the processes of this benchmark whose command line contains a name."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command, environment = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
        except OSError:  # it has ended, or is another user's
            continue
        if name.encode() in command and TOKEN.encode() in environment:
            found.append(int(process.name))
    return found


def digest(folder: Path) -> tuple[str, int]:
    """Return the hash of all output files in order, and the number of their rows."""
    files = sorted(folder.glob("*.jsonl"))
    content = b"".join(file.read_bytes() for file in files)
    return hashlib.sha256(content).hexdigest(), content.count(b"\n")


def finished_parts(folder: Path) -> int:
    return len(list((folder / "parts").glob("*.json")))


def wait_for_parts(folder: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    while finished_parts(folder) < count:
        assert process.poll() is None, "the job ended before it was killed; use more lines"
        time.sleep(0.2)


def kill_and_resume(source: Path, out: Path, part_lines: int, address: str) -> dict[str, int]:
    """Kill an actor, then the driver, in mid-run; finish the job with the same command."""
    command = batch(source, out, part_lines, "--ray", address, "--workers", 2)
    parts = -(-sum(1 for _ in source.open()) // part_lines)
    driver = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    wait_for_parts(out, parts // 5, driver)
    actors = [pid for pid in marked_processes("ray::") if b"MapWorker" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(actors[0], signal.SIGKILL)
    wait_for_parts(out, parts // 2, driver)
    driver.kill()
    driver.wait()
    left = finished_parts(out)
    run(*command)
    return {"parts": parts, "parts_done_at_the_kill": left}


def cluster() -> object:
    """Start two Ray nodes with one processor each."""
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes.add_node(num_cpus=1)
    return nodes


def measure(count: int, part_lines: int, folder: Path) -> list[str]:
    """Run everything; return the lines of the report."""
    few, many = write_lines(folder / "few.txt", count // 10), write_lines(folder / "many.txt", count)
    with (folder / "plain.txt").open("wb") as out:
        plain = run(HEEDFUL, "translate", many, "--threads", 1, *SEARCH, stdout=out)
    small = run(*batch(few, folder / "small", part_lines, "--workers", 1))
    one = run(*batch(many, folder / "one", part_lines, "--workers", 1))
    expected, rows = digest(folder / "one")
    texts = [json.loads(line)["text"] for path in sorted((folder / "one").glob("*.jsonl")) for line in path.open()]
    same = texts == (folder / "plain.txt").read_text(encoding="utf-8").splitlines()
    report = [
        f"Lines: {count:,} in parts of {part_lines:,}; model en-fr, greedy, {os.cpu_count()} processors.\n",
        "| | |\n|---|---|",
        f"| plain command, one thread | {count / plain.seconds:,.0f} lines per second |",
        f"| one worker | {count / one.seconds:,.0f} lines per second, {plain.seconds / one.seconds:.2f} of the plain |",
        f"| texts equal to those of the plain command | {same} |",
        f"| peak memory of the largest process, {count // 10:,} lines | {small.peak_mb:,.0f} MB |",
        f"| peak memory of the largest process, {count:,} lines | {one.peak_mb:,.0f} MB |",
    ]
    try:
        nodes = cluster()
    except ImportError:
        return [*report, "| Ray cluster | not installed |"]
    try:
        result = kill_and_resume(many, folder / "ray", part_lines, nodes.address)  # type: ignore[attr-defined]
    finally:
        nodes.shutdown()  # type: ignore[attr-defined]
    found, ray_rows = digest(folder / "ray")
    done, parts = result["parts_done_at_the_kill"], result["parts"]
    output = f"identical: {found == expected}, {ray_rows:,} of {rows:,} rows"
    return [
        *report,
        f"| Ray, two nodes: parts done when the driver was killed | {done} of {parts} |",
        f"| Ray: output after an actor and the driver were killed | {output} |",
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--part-lines", type=int, default=500)
    parser.add_argument("--out", type=Path, default=HERE / "batch.md")
    options = parser.parse_args(arguments)
    os.environ[TOKEN] = "1"
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with tempfile.TemporaryDirectory() as folder:
        report = measure(options.lines, options.part_lines, Path(folder))
    command = f"python benchmarks/batch.py --lines {options.lines}"
    text = "# heedful batch: rate, memory, killed processes\n\n" + f"Measured by `{command}`.\n\n" + "\n".join(report)
    options.out.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

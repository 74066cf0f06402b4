"""Measure what share of the time goes into the checks before C kernels (`kernels/guards.py`).

    python benchmarks/guards.py            # about two minutes; writes guards.md to benchmarks/

Each job runs once with every check counted, its arguments kept; then without counting, by processor time. The checks
are timed alone, with the kept arguments. The share is the time of a check times its number of calls, summed, divided
by the time of the job: a ratio that other load on the machine changes little.
"""

from __future__ import annotations

import statistics
import sys
import time
import timeit
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from versions import LINES, train

from heedful.config.decoding import DecodingOptions
from heedful.kernels import attention, cells, dropout, guards, history_attention, losses
from heedful.kernels import int8 as int8_kernels
from heedful.tasks.bundled import find_models
from heedful.tasks.seq2seq.predict import Predictor, generate_texts, load_predictor

CHECKS = ("admits", "admits_rows", "admits_mask", "check_indices", "check_offsets")
MODULES = (attention, cells, dropout, history_attention, int8_kernels, losses)
ROUNDS = 5
Call = tuple[str, tuple[Any, ...]]


@contextmanager
def counted(counts: Counter[tuple[Any, ...]], examples: dict[tuple[Any, ...], Call]) -> Any:
    """Count the checks by name and shapes, and keep the arguments of one call each."""

    def wrap(name: str, check: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            key = (name, *(tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in arguments))
            counts[key] += 1
            examples.setdefault(key, (name, arguments))
            return check(*arguments)

        return run

    changed = [(module, name) for module in MODULES for name in CHECKS if hasattr(module, name)]
    try:
        for module, name in changed:
            setattr(module, name, wrap(name, getattr(guards, name)))
        yield
    finally:
        for module, name in changed:
            setattr(module, name, getattr(guards, name))


def seconds_of_checks(counts: Counter[tuple[Any, ...]], examples: dict[tuple[Any, ...], Call]) -> float:
    total = 0.0
    for key, count in counts.items():
        name, arguments = examples[key]
        check = getattr(guards, name)
        timer = timeit.Timer(lambda check=check, arguments=arguments: check(*arguments), timer=time.process_time)
        total += count * min(timer.repeat(3, 2_000)) / 2_000
    return total


def measure(job: Callable[[], object]) -> tuple[int, float, float, float]:
    """Return the number of checks, and the median, smallest and largest share of the job's time."""
    counts: Counter[tuple[Any, ...]] = Counter()
    examples: dict[tuple[Any, ...], Call] = {}
    job()
    with counted(counts, examples):
        job()
    shares = []
    for _ in range(ROUNDS):
        start = time.process_time()
        job()
        shares.append(seconds_of_checks(counts, examples) / (time.process_time() - start))
    return sum(counts.values()), statistics.median(shares), min(shares), max(shares)


def main() -> None:
    torch.set_num_threads(1)
    jobs: dict[str, Callable[[], object]] = {}
    for kind, int8 in (("float32", False), ("int8", True)):
        predictor = load_predictor(find_models(["en-fr"], "translate"), int8, threads=1)

        def run(beam: int, *batches: list[str], predictor: Predictor = predictor) -> None:
            for lines in batches:
                generate_texts(predictor, lines, DecodingOptions(beam=beam))

        jobs[f"greedy, 64 lines, {kind}"] = partial(run, 1, LINES)
        jobs[f"beam 5, 32 lines, {kind}"] = partial(run, 5, LINES[:32])
        jobs[f"one by one, 12 lines, {kind}"] = partial(run, 1, *([line] for line in LINES[:12]))
    jobs["train, 25 steps"] = train
    lines = ["| work | checks | share of the time (range) |", "|---|---:|---|"]
    for name, job in jobs.items():
        count, middle, low, high = measure(job)
        lines.append(f"| {name} | {count:,} | {middle:.2%} ({low:.2%} to {high:.2%}) |")
        print(lines[-1], file=sys.stderr)
    head = (
        "# The checks before C kernels\n\nShare of the processor time, one thread, bundled translator and"
        " `recipes/world-phrases.toml` (`python benchmarks/guards.py`).\n\n"
    )
    Path(__file__).with_suffix(".md").write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""A campaign: many cases of one seed, with its progress in a file, so that it can be stopped and resumed."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from fuzz.case import Case
from fuzz.corpus import ROOT, Corpus
from fuzz.generate import make_case
from fuzz.judge import Failure, Outcome, judge
from fuzz.supervisor import Supervisor

SAVE_EVERY = 200  # cases
EXAMPLES = 5  # cases per signature


@dataclass
class Group:
    """Failures of one signature."""

    count: int = 0
    cases: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    command: str = ""
    text: str = ""


@dataclass
class Progress:
    """What a campaign has seen so far."""

    seed: int
    done: int = 0
    seconds: float = 0.0
    kinds: dict[str, int] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    slowest: dict[str, float] = field(default_factory=dict)  # by kind, in seconds of processor time
    largest: dict[str, int] = field(default_factory=dict)  # by kind, in bytes
    time: dict[str, float] = field(default_factory=dict)  # by kind, in seconds in total
    failures: dict[str, Group] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, seed: int) -> Progress:
        """Continue the campaign of this seed, or start it."""
        if not path.is_file():
            return cls(seed)
        tree = json.loads(path.read_text(encoding="utf-8"))
        failures = {signature: Group(**group) for signature, group in tree.pop("failures").items()}
        return cls(**tree, failures=failures)

    def save(self, path: Path) -> None:
        """Write the progress; an interrupted write leaves the file as it was."""
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".tmp")
        draft.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        draft.replace(path)

    def add(self, case: Case, outcome: Outcome, failure: Failure | None, seconds: float) -> None:
        """Count one case."""
        reply, kind = outcome.reply, case.kind
        self.done += 1
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        self.time[kind] = self.time.get(kind, 0.0) + seconds
        code = str(reply["code"]) if reply["code"] >= 0 else "none"
        self.codes[code] = self.codes.get(code, 0) + 1
        self.slowest[kind] = max(self.slowest.get(kind, 0.0), reply["cpu"])
        self.largest[kind] = max(self.largest.get(kind, 0), reply["peak"])
        if failure is None:
            return
        group = self.failures.setdefault(failure.signature, Group())
        group.count += 1
        if len(group.cases) < EXAMPLES:
            group.cases.append(case.name)
        if kind not in group.kinds:
            group.kinds.append(kind)
        if not group.text:
            group.command, group.text = f"heedful {' '.join(case.argv)}"[:200], failure.text[-1_500:]


def run_campaign(
    corpus: Corpus,
    supervisors: Sequence[Supervisor],
    progress: Progress,
    cases: int,
    path: Path,
    log: Callable[[str], None],
    kinds: tuple[str, ...] = (),
) -> None:
    """Run the cases that are left of a campaign, one at a time per supervisor, and count them in order."""
    idle: SimpleQueue[Supervisor] = SimpleQueue()
    for supervisor in supervisors:
        idle.put(supervisor)

    def run(number: int) -> tuple[Case, Outcome, Failure | None, float]:
        supervisor = idle.get()
        try:
            start = time.monotonic()
            case = make_case(corpus, progress.seed, number, kinds)
            outcome = supervisor.run(case)
            return case, outcome, judge(case, outcome), time.monotonic() - start
        finally:
            idle.put(supervisor)

    with ThreadPoolExecutor(len(supervisors)) as pool:
        while progress.done < cases:
            start = time.monotonic()
            numbers = range(progress.done, min(cases, progress.done + SAVE_EVERY - progress.done % SAVE_EVERY))
            for case, outcome, failure, seconds in pool.map(run, numbers):
                if failure is not None and failure.signature not in progress.failures:
                    log(f"{case.name} ({case.kind}): {failure.signature}")
                progress.add(case, outcome, failure, seconds)
            progress.seconds += time.monotonic() - start
            progress.save(path)
            log(summary_line(progress))


def summary_line(progress: Progress) -> str:
    """Return one line about the campaign."""
    failed = sum(group.count for group in progress.failures.values())
    rate = progress.done / max(progress.seconds, 1e-9)
    return f"{progress.done:,} cases, {rate:.1f} per second, {failed:,} failures of {len(progress.failures)} kinds"


def failure_list(progress: Progress) -> str:
    """Return the failures as Markdown, the most frequent first."""
    parts = [f"# Failures of seed {progress.seed}: {summary_line(progress)}\n"]
    for signature, group in sorted(progress.failures.items(), key=lambda item: -item[1].count):
        parts.append(
            f"## {signature}\n\n{group.count} cases ({', '.join(group.kinds)}), such as {', '.join(group.cases)}\n\n"
            f"    {group.command!r}\n\n```\n{group.text[-900:]}\n```\n"
        )
    return "\n".join(parts)


def report(progress: Progress, command: str) -> str:
    """Return the page docs/fuzzing.md."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    rows = "\n".join(
        f"| {kind} | {count:,} | {progress.time[kind] / count * 1_000:.0f} ms | {progress.slowest[kind]:.1f} s |"
        f" {progress.largest[kind] / 1e6:,.0f} MB |"
        for kind, count in sorted(progress.kinds.items(), key=lambda item: -item[1])
    )
    codes = ", ".join(f"{code}: {count:,}" for code, count in sorted(progress.codes.items()))
    failures = "\n".join(
        f"- {group.count:,} x {signature} (`--case {group.cases[0]}`)" for signature, group in progress.failures.items()
    )
    return PAGE.format(
        date=datetime.now(UTC).date(), commit=commit, command=command, seed=progress.seed, done=progress.done,
        minutes=progress.seconds / 60, rate=progress.done / max(progress.seconds, 1e-9), rows=rows, codes=codes,
        failures=failures or "None.", python=platform.python_version(),
    )  # fmt: skip


PAGE = """# Fuzzing

`make fuzz` runs generated cases, each made from intact input by random changes (`tests/fuzz`):

- through the program's entry point: recipes, traces, model folders, folders of transformers (`-m hf:`), data files,
  word links, guided attention, pairs to align, batch jobs with damaged records, images and options;
- through uvicorn's parser: the bytes of requests to every route of the server and the studio, with odd headers,
  uploads, chunks and lengths (processes of trainings are replaced, and run as cases of their own);
- through `heedful.Client`: answers of a server that is none of ours.

Every case must end with a documented exit code (0 done, 1 some inputs failed, 2 the user's mistake, 130 interrupted)
and, if it fails, one clear message without a traceback; in less than 20 s and 1.5 GB; without changing its inputs,
leaving files behind, running code from a model folder, starting a process, opening a connection or reading a file that
nobody named. A request must be answered with a documented status, problem details and the security headers, never
with 500 or a path of the server; not at all without a session or from another origin; and leave nothing in the queue.

A case is determined by a seed and a number, as long as the generators do not change:

    PYTHONPATH=tests python -m fuzz --case {seed}:17             # run one case again
    PYTHONPATH=tests python -m fuzz --case {seed}:17 --minimize  # and make it small
    make fuzz FUZZ='--seed 2 --cases 1000'

A campaign can be stopped and started again with the same command. Cases that failed once are stored in
`tests/fuzz/regressions`, and `make test` runs them, with some hundred others. `make fuzz-guided` runs the readers of
traces, recipes, tables, links, labels, tokenizers, catalogs and weights under atheris, which keeps the changes that
reach new code; a reader may raise errors of heedful and nothing else.

## The last campaign

{date}, commit {commit}, Python {python}: seed {seed}, {done:,} cases in {minutes:.0f} minutes
({rate:.1f} per second).

    {command}

| kind | cases | mean time | longest (processor) | largest memory |
|---|---:|---:|---:|---:|
{rows}

Memory includes Python, torch and all modules (about 350 MB). Exit codes: {codes}.

### Failures

{failures}
"""


def describe(outcome: Outcome) -> dict[str, Any]:
    """Return what is worth printing about an outcome."""
    reply = outcome.reply
    names = (
        "code",
        "killed",
        "exception",
        "frame",
        "stdout",
        "stderr",
        "native",
        "warnings",
        "events",
        "cpu",
        "peak",
        "traceback",
    )
    return {name: reply.get(name) for name in names} | {"created": outcome.created, "changed": outcome.changed}

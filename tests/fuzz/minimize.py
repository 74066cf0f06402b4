"""Make a failing case small: leave out whatever the failure does not need."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fuzz.campaign import Progress
from fuzz.case import Case, encode_case
from fuzz.corpus import Corpus
from fuzz.generate import make_case
from fuzz.judge import judge
from fuzz.supervisor import Supervisor

BUDGET = 150  # runs
SLOW = 2.0  # seconds of a run, above which a case stays as it is
LARGEST = 60_000  # bytes of a stored case


def keep_failures(
    corpus: Corpus,
    supervisor: Supervisor,
    progress: Progress,
    folder: Path,
    log: Callable[[str], None],
    kinds: tuple[str, ...],
) -> None:
    """Store one small case of each signature of a campaign, unless it is stored already or does not fail any more."""
    for group in list(progress.failures.values()):
        seed, _, number = group.cases[0].partition(":")
        case = make_case(corpus, int(seed), int(number), kinds)
        outcome = supervisor.run(case)
        failure = judge(case, outcome)
        if failure is None:
            log(f"{case.name}: does not fail any more")
            continue
        path = folder / f"{re.sub(r'[^a-z0-9]+', '-', failure.signature.lower()).strip('-')}.json"
        if path.exists():
            continue
        if outcome.reply["cpu"] < SLOW:
            case = minimize(case, supervisor, failure.signature)
        text = encode_case(case, corpus.models)
        log(f"{case.name}: {path.name}, {len(text):,} bytes{'' if len(text) <= LARGEST else ': too large to store'}")
        if len(text) <= LARGEST:
            path.write_text(text, encoding="utf-8")


def minimize(case: Case, supervisor: Supervisor, signature: str) -> Case:
    """Return a smaller case with a failure of the same signature."""
    runs = 0

    def fails(candidate: Case) -> bool:
        nonlocal runs
        runs += 1
        if runs > BUDGET:
            return False
        failure = judge(candidate, supervisor.run(candidate))
        return failure is not None and failure.signature == signature

    case = _drop_arguments(case, fails)
    for name in sorted(case.files):
        without = case.with_files({key: data for key, data in case.files.items() if key != name})
        if fails(without):
            case = without
    for folder, model in case.folders.items():  # a changed file that need not be changed becomes the intact one
        for name, content in supervisor.intact[model].items():
            path = f"{folder}/{name}"
            if path in case.files and case.files[path] != content:
                candidate = case.with_files({**case.files, path: content})
                if fails(candidate):
                    case = candidate
    intact = {content for files in supervisor.intact.values() for content in files.values()}
    for name in sorted(case.files):
        if case.files[name] not in intact:
            case = _shrink(case, name, fails)
    stdin = _smallest(case.stdin, lambda data: fails(replace(case, stdin=data)))
    return replace(case, stdin=stdin)


def _drop_arguments(case: Case, fails: Callable[[Case], bool]) -> Case:
    at = len(case.argv) - 1
    while at > 0:
        for width in (2, 1):
            candidate = replace(case, argv=case.argv[:at] + case.argv[at + width :])
            if fails(candidate):
                case = candidate
                break
        at -= 1
    return case


def _shrink(case: Case, name: str, fails: Callable[[Case], bool]) -> Case:
    data = _smallest(case.files[name], lambda part: fails(case.with_files({**case.files, name: part})))
    return case.with_files({**case.files, name: data})


def _smallest(data: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """Drop chunks, half of the data first, then smaller ones."""
    size = max(1, len(data) // 2)
    while data:
        at = 0
        while at < len(data):
            candidate = data[:at] + data[at + size :]
            if fails(candidate):
                data = candidate
            else:
                at += size
        if size <= max(1, len(data) // 64):
            return data
        size = max(1, size // 2)
    return data

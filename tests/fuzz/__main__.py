"""Command line of the campaign: `PYTHONPATH=tests python -m fuzz`."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

from fuzz.campaign import Progress, describe, failure_list, report, run_campaign, summary_line
from fuzz.case import Case, decode_case, encode_case, write_files
from fuzz.corpus import ROOT, Corpus, load_corpus
from fuzz.generate import GENERATORS, make_case
from fuzz.judge import judge
from fuzz.minimize import keep_failures, minimize
from fuzz.supervisor import Supervisor

REGRESSIONS = Path(__file__).with_name("regressions")
PAGE = ROOT / "docs" / "fuzzing.md"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description="Run generated cases through heedful's command line.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--kinds", nargs="*", default=(), choices=tuple(GENERATORS), help="only these kinds")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="cases that run at the same time")
    parser.add_argument("--restart", action="store_true", help="forget the progress of this seed")
    parser.add_argument("--write", action="store_true", help="write docs/fuzzing.md at the end")
    parser.add_argument("--failures", type=Path, help="write the list of failures to this file")
    parser.add_argument("--keep", action="store_true", help="store one small case of each failure of this seed")
    parser.add_argument("--case", help="run one case: SEED:NUMBER, or a stored file")
    parser.add_argument("--minimize", action="store_true", help="with --case: make it small")
    parser.add_argument("--store", metavar="NAME", help="with --case: store it as a regression file")
    parser.add_argument("--unpack", type=Path, metavar="FOLDER", help="with --case: write its files into a folder")
    return parser.parse_args()


def state_file(seed: int, kinds: tuple[str, ...]) -> Path:
    folder = Path(os.environ["HEEDFUL_RUNS"]) / "fuzz" if "HEEDFUL_RUNS" in os.environ else ROOT / "build" / "fuzz"
    return folder / f"seed-{'-'.join((str(seed), *kinds))}.json"


def find_case(corpus: Corpus, text: str, kinds: tuple[str, ...]) -> Case:
    numbers = re.fullmatch(r"(\d+):(\d+)", text)
    if numbers:
        return make_case(corpus, int(numbers[1]), int(numbers[2]), kinds)
    return decode_case(Path(text).read_text(encoding="utf-8"), corpus.models)


def run_one(arguments: argparse.Namespace) -> int:
    corpus = load_corpus()
    case = find_case(corpus, arguments.case, tuple(arguments.kinds))
    with Supervisor(corpus.models) as supervisor:
        outcome = supervisor.run(case)
        failure = judge(case, outcome)
        if failure is not None and arguments.minimize:
            case = minimize(case, supervisor, failure.signature)
            outcome = supervisor.run(case)
    if arguments.unpack:
        write_files(case.files, arguments.unpack)
    print(f"heedful {case.argv}\nfiles: { {name: len(data) for name, data in case.files.items()} }")
    for name, value in describe(outcome).items():
        print(f"{name}: {value}" if name in ("traceback", "stderr") else f"{name}: {json.dumps(value)[:2_000]}")
    print(f"failure: {failure.signature if failure else None}")
    if arguments.store:
        REGRESSIONS.mkdir(exist_ok=True)
        (REGRESSIONS / f"{arguments.store}.json").write_text(encode_case(case, corpus.models), encoding="utf-8")
    return int(failure is not None)


def log(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))  # so that the worker and its folder are removed
    arguments = parse()
    if arguments.case:
        return run_one(arguments)
    kinds = tuple(arguments.kinds)
    path = state_file(arguments.seed, kinds)
    if arguments.restart:
        path.unlink(missing_ok=True)
    progress = Progress.load(path, arguments.seed)
    corpus = load_corpus()
    with ExitStack() as stack:
        workers = 1 if arguments.keep else arguments.workers
        supervisors = [stack.enter_context(Supervisor(corpus.models)) for _ in range(workers)]
        if arguments.keep:
            REGRESSIONS.mkdir(exist_ok=True)
            keep_failures(corpus, supervisors[0], progress, REGRESSIONS, log, kinds)
            return 0
        run_campaign(corpus, supervisors, progress, arguments.cases, path, log, kinds)
    if arguments.failures:
        arguments.failures.write_text(failure_list(progress), encoding="utf-8")
    if arguments.write:
        PAGE.write_text(report(progress, f"make fuzz FUZZ='{' '.join(sys.argv[1:])}'"), encoding="utf-8")
    print(summary_line(progress))
    for signature, group in sorted(progress.failures.items(), key=lambda item: -item[1].count):
        print(f"{group.count:6,}  {signature}  ({group.cases[0]})")
    return int(bool(progress.failures))


if __name__ == "__main__":
    sys.exit(main())

"""The conductor: everybody in turn, round after round; then the table and the picture.

    make bench                                                  # everything; hours the first time
    python benchmarks/speed/run.py --rows train-R,greedy-R      # some rows; the others keep what they had
    python benchmarks/speed/run.py --quick --rows startup       # seconds a row, to see that it works

A row's record is kept in build/bench/results; RESULTS.md is made of all records there are. Environments,
pieces and trained weights are made where they are missing and kept.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import places
from picture import draw
from rows import BY_NAME, OURS, ROWS, Row
from startup import START
from table import document
from talk import Talk, WorkerError

ENVIRONMENT = {"joey": "joey", "onmt": "onmt", "ct2": "onmt"}  # whose interpreter a worker runs in
QUIET = 0.5  # seconds


class Bench:
    """One run with its settings."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.commands = dict(given.split("=", 1) for given in asked.worker)
        self.own = dict(given.split("=", 1) for given in asked.decoding)
        self.kept = kept(asked.quick)

    def command(self, system: str) -> list[str]:
        if system in self.commands:
            return shlex.split(self.commands[system])
        where = ENVIRONMENT.get(system)
        python = str(places.python(where)) if where else sys.executable
        return [python, str(places.HERE / f"worker_{system}.py")]

    @contextmanager
    def workers(self, *systems: str) -> Iterator[dict[str, Talk]]:
        with ExitStack() as stack:
            talks = {}
            for system in systems:
                talks[system] = Talk(system, self.command(system), self.asked.threads)
                stack.callback(talks[system].close)
            yield talks

    def measure(self, row: Row) -> dict[str, Any]:
        how = {
            "train": self.train,
            "decode": self.decode,
            "traced": self.decode,
            "startup": self.startup,
            "bleu": self.bleu,
        }
        return how[row.kind](row)

    def train(self, row: Row) -> dict[str, Any]:
        """Target tokens a second, end tokens included, in windows of steady training."""
        rounds, peaks, notes = [], [], {}
        with self.workers(*row.systems) as talks:
            for number in range(self.asked.rounds):
                found = {}
                for system, talk in talks.items():
                    answer = talk.ask(
                        "train", model=row.model, seconds=self.asked.seconds, threads=self.asked.threads
                    )
                    found[system] = {
                        "rate": answer["tokens"] / answer["seconds"],
                        "peak_rss_mb": answer["peak_rss_mb"],
                    }
                    notes[system] = {"parameters": answer.get("parameters", 0)}
                peaks.append(talks["heedful"].ask("gemm", threads=self.asked.threads)["gflops"])
                rounds.append(found)
                self.say(row, number, found)
        return {"rounds": rounds, "peaks": peaks, "notes": notes}

    def decode(self, row: Row) -> dict[str, Any]:
        """Sentences a second, from text to text; CTranslate2 and we with the thread count that suits best.

        A traced row is ourselves beside ourselves: greedy with every weight kept, and without.
        """
        rounds, notes, outputs = [], {}, {}
        count = min(row.sentences, self.asked.sentences)
        names = dict.fromkeys("heedful" if system in OURS else system for system in row.systems)
        with self.workers(*names) as workers:
            talks = {system: workers["heedful" if system in OURS else system] for system in row.systems}
            best = {system: self.best_threads(talk, row, system) for system, talk in talks.items()}
            for number in range(self.asked.rounds):
                found = {}
                for system, talk in talks.items():
                    answer = self.written(talk, row, system, count, best[system])
                    found[system] = {"rate": count / answer["seconds"]}
                    outputs[system] = answer["outputs"]
                rounds.append(found)
                self.say(row, number, found)
        for system, said in outputs.items():
            notes[system] = self.judged(row, system, said, outputs.get("onmt"), best[system])
        return {"rounds": rounds, "notes": notes}

    def written(
        self, talk: Talk, row: Row, system: str, count: int, threads: Mapping[str, int]
    ) -> dict[str, Any]:
        """Ask for outputs; of ourselves in bytes or not, with looks kept or not.

        After a moment of quiet: threads of whoever wrote before may spin for 0.2 s.
        """
        time.sleep(0.0 if self.asked.quick else QUIET)
        how = "greedy" if system in ("plain", "plain8") else row.how
        more: dict[str, Any] = dict(threads)
        if system in OURS:
            more |= {"int8": OURS[system], **{key: _number(value) for key, value in self.own.items()}}
        model = "own" if row.own and system in OURS else row.model
        return talk.ask("decode", model=model, how=how, sentences=count, **more)

    def best_threads(self, talk: Talk, row: Row, system: str) -> dict[str, int]:
        """The fewest seconds over some sentences; the first call of each warms it up.

        Threads within a product, or (CTranslate2 and we) workers of one thread with a batch each.
        """
        if talk.name in ("joey", "onmt") and not row.best:
            return {"threads": self.asked.threads}
        choices: list[dict[str, int]] = [{"threads": n} for n in range(1, self.asked.threads + 1)]
        if talk.name in ("ct2", "heedful") and self.asked.threads > 1 and row.how != "single":
            choices.append({"threads": 1, "workers": self.asked.threads})
        few = min(row.sentences, self.asked.sentences, 30 if row.how == "single" else 256)
        seconds = []
        for choice in choices:
            self.written(talk, row, system, min(few, 16), choice)
            tries = [self.written(talk, row, system, few, choice)["seconds"] for _ in range(2)]
            seconds.append(min(tries))
        return choices[seconds.index(min(seconds))]

    def judged(
        self, row: Row, system: str, said: list[str], theirs: list[str] | None, threads: Mapping[str, int]
    ) -> dict[str, Any]:
        """BLEU of the outputs, and how many are OpenNMT-py's own."""
        from heedful.evaluation import evaluate

        (self.kept / f"{row.name}.{system}.txt").write_text("".join(f"{line}\n" for line in said), "utf-8")
        found: dict[str, Any] = {
            "sentences": len(said),
            "threads": "x".join(str(threads[key]) for key in ("workers", "threads") if key in threads),
        }
        if places.text(places.TEST, places.TARGET).is_file():
            references = places.lines(places.TEST, places.TARGET, len(said))
            found["bleu"] = evaluate(["bleu"], said, references)[0].value
        if theirs is not None:
            found["same"] = sum(a == b for a, b in zip(said, theirs, strict=True))
        return found

    def startup(self, row: Row) -> dict[str, Any]:
        """From the command to the first line of output, one sentence in."""
        rounds = []
        for number in range(self.asked.rounds):
            found = {system: {"rate": 1 / START[system](row.model)} for system in row.systems}
            rounds.append(found)
            self.say(row, number, found)
        return {"rounds": rounds, "notes": {}}

    def bleu(self, row: Row) -> dict[str, Any]:
        """Minutes of training to a validation BLEU of 30; validations take no time on either side."""
        wanted, limit = self.asked.bleu, self.asked.minutes * 60
        curves: dict[str, list[list[float]]] = {"heedful": [], "onmt": []}
        open_ = {"heedful", "onmt"}
        with self.workers("onmt", "heedful") as talks:
            while open_:
                for system in sorted(open_):
                    ours = system == "heedful"
                    more = {"seconds": self.asked.slice} if ours else {"steps": self.asked.steps}
                    model = str(self.asked.choice) if ours else "R"
                    answer = talks[system].ask("train", model=model, threads=self.asked.threads, **more)
                    if system == "heedful":
                        curves[system] = answer["curve"]
                    else:
                        curves[system].append([answer["total_seconds"], self.now(talks[system])])
                    print(f"{row.name} {system}: {curves[system][-1:]}", file=sys.stderr, flush=True)
                    reached = crossing(curves[system], wanted) is not None
                    if reached or answer.get("ended") or answer["total_seconds"] > limit:
                        open_.discard(system)
            if not self.asked.quick and not places.checkpoint("R").is_file():
                talks["onmt"].ask("keep", model="R")  # trained once is enough
        found, notes = {}, {}
        for system, curve in curves.items():
            seconds = crossing(curve, wanted)
            notes[system] = {"curve": curve, "reached": seconds is not None}
            if seconds is None and (system == "heedful" or not curve):
                raise WorkerError(f"{system} did not reach BLEU {wanted}; its curve: {curve}")
            found[system] = {"rate": 60 / (seconds or curve[-1][0])}
        return {"rounds": [found], "notes": notes}

    def now(self, talk: Talk) -> float:
        """Validation BLEU of the weights that are being trained."""
        from heedful.evaluation import evaluate

        references = places.lines("val", places.TARGET, self.asked.valid)
        answer = talk.ask(
            "decode", model="R", how="greedy", sentences=self.asked.valid, split="val", live=True,
            threads=self.asked.threads,
        )  # fmt: skip
        return evaluate(["bleu"], answer["outputs"], references)[0].value

    def say(self, row: Row, number: int, found: Mapping[str, Mapping[str, float]]) -> None:
        rates = ", ".join(f"{system} {values['rate']:.4g}" for system, values in found.items())
        print(f"{row.name} {number + 1}/{self.asked.rounds}: {rates}", file=sys.stderr, flush=True)


def crossing(curve: list[list[float]], wanted: float) -> float | None:
    """When a curve of (seconds, BLEU) first reaches `wanted`, on the line between two points.

    >>> crossing([[10.0, 20.0], [20.0, 40.0]], 30.0)
    15.0
    """
    before = [0.0, 0.0]
    for point in curve:
        if point[1] >= wanted:
            return before[0] + (point[0] - before[0]) * (wanted - before[1]) / (point[1] - before[1])
        before = point
    return None


def _number(text: str) -> Any:
    """A setting from the command line: a number or true or false where it is one."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def ready(rows: list[Row], threads: int) -> None:
    """Make what is missing: pieces, environments, and the weights that these rows decode with."""
    import environments
    import from_onmt
    import prepare

    prepare.main()
    systems = {system for row in rows for system in row.systems}
    for peer in sorted({ENVIRONMENT[system] for system in systems if system in ENVIRONMENT}):
        environments.make(peer)
    models = sorted({row.model for row in rows if row.kind in ("decode", "traced", "startup")})
    for model in models:
        if not places.checkpoint(model).is_file():
            environments.make("onmt")
            print(f"training model {model} in OpenNMT-py", file=sys.stderr, flush=True)
            script = str(places.HERE / "train_onmt.py")
            call = [str(places.python("onmt")), script, model, "--threads", str(threads)]
            subprocess.run(call, check=True)
        from_onmt.convert(model)
    if any(row.own for row in rows):
        print("our own model (own.toml)", file=sys.stderr, flush=True)
        call = [sys.executable, "-m", "heedful", "train", str(places.HERE / "own.toml")]
        files = [
            f'data.{split}=["{places.text(name, "en")}", "{places.text(name, "de")}"]'
            for split, name in (("train", "train"), ("valid", "val"))
        ]
        subprocess.run([*call, *files, "--out", str(places.converted("own"))], check=True)


def machine() -> str:
    """The processor's name and how many cores there are."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = info.read_text(encoding="utf-8").splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    return f"{name}, {os.cpu_count()} cores"


def commit() -> str:
    """The commit, with a + where files differ from it."""
    call = ["git", "-C", str(places.ROOT)]
    done = subprocess.run(
        [*call, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    changed = subprocess.run([*call, "status", "--porcelain"], capture_output=True, text=True, check=False)
    return (done.stdout.strip() or "unknown") + ("+" if changed.stdout.strip() else "")


def kept(quick: bool) -> Path:
    """Where records lie; what was measured in a hurry lies apart."""
    return places.CACHE / ("results-quick" if quick else "results")


def report(folder: Path, out: Path) -> None:
    """RESULTS.md and the pictures from all records there are."""
    import environments

    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")}
    records = [found[row.name] for row in ROWS if row.name in found]
    if not records:
        raise SystemExit("nothing is measured yet")
    out.mkdir(parents=True, exist_ok=True)
    growth = ""
    if (out / "growth.png").is_file():
        growth = (
            "## How cost grows\n\n![cost against length, batch and vocabulary](growth.png)\n\n"
            "In numbers: [growth.md](growth.md). Training memory against the size of the corpus:"
            " [memory_corpus.md](memory_corpus.md)."
        )
    (out / "RESULTS.md").write_text(document(records, environments.versions(), growth), encoding="utf-8")
    draw(records, out / "results.png")


def lost(folder: Path, out: Path, rows: list[Row]) -> list[str]:
    """Rows of a RESULTS.md that nobody could write again: their records are on another machine."""
    path = out / "RESULTS.md"
    told = path.read_text(encoding="utf-8") if path.is_file() else ""
    there = {row.name for row in rows} | {path.stem for path in folder.glob("*.json")}
    return [row.name for row in ROWS if f"| {row.title} |" in told and row.name not in there]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    made.add_argument("--rows", default="all", help="names with commas between them: " + ", ".join(BY_NAME))
    made.add_argument("--rounds", type=int, default=0, help="of each row; 5, quick: 2")
    made.add_argument("--seconds", type=float, default=0.0, help="of a training window; 30, quick: 3")
    made.add_argument("--sentences", type=int, default=0, help="to translate, at most; 1000, quick: 20")
    made.add_argument("--threads", type=int, default=2)
    made.add_argument("--bleu", type=float, default=30.0, help="of the row bleu30")
    made.add_argument("--minutes", type=float, default=90.0, help="bleu30: when to give up")
    made.add_argument("--choice", type=Path, default=places.HERE / "bleu30.toml", help="bleu30: our recipe")
    made.add_argument("--slice", type=float, default=60.0, help="bleu30: seconds of ours between theirs")
    made.add_argument("--steps", type=int, default=145, help="bleu30: OpenNMT-py's between validations")
    made.add_argument("--valid", type=int, default=1014, help="bleu30: validation sentences")
    made.add_argument("--quick", action="store_true", help="just to see that it works")
    made.add_argument("--out", type=Path, help="for RESULTS.md; benchmarks, or build/bench/quick")
    made.add_argument("--worker", action="append", default=[], metavar="NAME=COMMAND", help="another worker")
    made.add_argument("--decoding", action="append", default=[], metavar="KEY=VALUE", help="for ours")
    made.add_argument("--as-is", action="store_true", help="make nothing that is missing")
    made.add_argument("--report", action="store_true", help="only write RESULTS.md from what is there")
    return made


def main(arguments: list[str] | None = None) -> int:
    asked = parser().parse_args(arguments)
    asked.rounds = asked.rounds or (2 if asked.quick else 5)
    asked.seconds = asked.seconds or (3.0 if asked.quick else 30.0)
    asked.sentences = asked.sentences or (20 if asked.quick else 1000)
    asked.out = asked.out or (places.CACHE / "quick" if asked.quick else places.ROOT / "benchmarks")
    names = list(BY_NAME) if asked.rows == "all" else asked.rows.split(",")
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise SystemExit(f"no such row: {', '.join(unknown)}; there are {', '.join(BY_NAME)}")
    rows = [BY_NAME[name] for name in names]
    rows = (
        [] if asked.report else sorted(rows, key=lambda row: row.kind != "bleu")
    )  # it trains R for the others
    bench, failed = Bench(asked), False
    if gone := lost(bench.kept, asked.out, rows):
        raise SystemExit(
            f"{asked.out / 'RESULTS.md'} would lose what was measured elsewhere: {', '.join(gone)};"
            " --out takes another folder"
        )
    for row in rows:
        bench.kept.mkdir(parents=True, exist_ok=True)
        if not asked.as_is:
            ready([row], asked.threads)
        about = {"row": row.name, "commit": commit(), "machine": machine(), "threads": asked.threads}
        try:
            record = {**about, **bench.measure(row), "when": datetime.now(UTC).isoformat(timespec="seconds")}
        except WorkerError as error:  # the other rows are worth having
            print(f"{row.name}: {error}", file=sys.stderr, flush=True)
            failed = True
            continue
        text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
        (bench.kept / f"{row.name}.json").write_text(text, encoding="utf-8")
        report(bench.kept, asked.out)
    if asked.report:
        report(bench.kept, asked.out)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

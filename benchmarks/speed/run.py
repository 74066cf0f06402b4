"""Measure all systems in turn, round by round; then write the table and the picture.

    make bench                                                  # everything; hours the first time
    python benchmarks/speed/run.py --rows train-R,greedy-R      # some rows; the others keep their records
    python benchmarks/speed/run.py --quick --rows startup       # seconds per row, to see that it works

Records are kept in HEEDFUL_RUNS/bench/results; RESULTS.md is written from all records there. Environments, tokenizer
and trained weights are created where they are missing, and kept.
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

import paths
from client import WorkerClient, WorkerError
from plot import draw
from rows import BY_NAME, ROWS, USES_INT8, Row
from startup import MEASURE_START
from table import make_document

ENVIRONMENT = {"joey": "joey", "onmt": "onmt", "ct2": "onmt", "ct2f": "onmt"}  # whose interpreter a worker runs in
WORKER = {**dict.fromkeys(USES_INT8, "heedful"), "ct2f": "ct2"}  # systems that share a worker; others have their own
KERNELS = os.environ.get("HEEDFUL_KERNELS", "")
PAUSE = 0.5  # seconds before each measurement


class Benchmark:
    """One run with its options."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.commands = dict(text.split("=", 1) for text in options.worker)
        self.decoding = dict(text.split("=", 1) for text in options.decoding)
        self.results = results_folder(options.quick)

    def command(self, system: str) -> list[str]:
        if system in self.commands:
            return shlex.split(self.commands[system])
        peer = ENVIRONMENT.get(system)
        python = str(paths.interpreter(peer)) if peer else sys.executable
        return [python, str(paths.HERE / f"worker_{system}.py")]

    @contextmanager
    def workers(self, *systems: str) -> Iterator[dict[str, WorkerClient]]:
        """Start one worker per system and stop them at the end."""
        with ExitStack() as stack:
            clients = {}
            for system in systems:
                clients[system] = WorkerClient(system, self.command(system), self.options.threads)
                stack.callback(clients[system].close)
            yield clients

    def measure(self, row: Row) -> dict[str, Any]:
        methods = {
            "train": self.measure_training,
            "decode": self.measure_decoding,
            "traced": self.measure_decoding,
            "startup": self.measure_startup,
            "memory": self.measure_memory,
            "bleu": self.measure_time_to_bleu,
        }
        return methods[row.kind](row)

    def measure_training(self, row: Row) -> dict[str, Any]:
        """Measure target tokens per second, end tokens included, in windows of steady training."""
        rounds, peaks, notes = [], [], {}
        threads = self.options.threads
        with self.workers(*row.systems) as clients:
            for number in range(self.options.rounds):
                results = {}
                for system, client in clients.items():
                    reply = client.request("train", model=row.model, seconds=self.options.seconds, threads=threads)
                    results[system] = {
                        "rate": reply["tokens"] / reply["seconds"],
                        "peak_rss_mb": reply["peak_rss_mb"],
                    }
                    notes[system] = {"parameters": reply.get("parameters", 0)}
                peaks.append(clients["heedful"].request("gemm", threads=threads)["gflops"])
                rounds.append(results)
                self.log_round(row, number, results)
        return {"rounds": rounds, "peaks": peaks, "notes": notes}

    def measure_decoding(self, row: Row) -> dict[str, Any]:
        """Measure sentences per second from text to text; CTranslate2 and heedful use their best number of threads.

        A traced row compares heedful with itself: greedy with and without recording all weights.
        """
        rounds, notes, outputs = [], {}, {}
        count = min(row.sentences, self.options.sentences)
        names = dict.fromkeys(WORKER.get(system, system) for system in row.systems)
        with self.workers(*names) as workers:
            clients = {system: workers[WORKER.get(system, system)] for system in row.systems}
            threads = {system: self.best_threads(client, row, system) for system, client in clients.items()}
            for number in range(self.options.rounds):
                results = {}
                for system, client in clients.items():
                    reply = self.decode(client, row, system, count, threads[system])
                    results[system] = {"rate": count / reply["seconds"]}
                    outputs[system] = reply["outputs"]
                rounds.append(results)
                self.log_round(row, number, results)
        for system, lines in outputs.items():
            notes[system] = self.evaluate_outputs(row, system, lines, outputs.get("onmt"), threads[system])
        return {"rounds": rounds, "notes": notes}

    def decode(
        self,
        client: WorkerClient,
        row: Row,
        system: str,
        count: int,
        threads: Mapping[str, int],
        split: str = paths.TEST,
    ) -> dict[str, Any]:
        """Request outputs after a pause: threads of the system measured before may spin for 0.2 s."""
        time.sleep(0.0 if self.options.quick else PAUSE)
        method = "greedy" if system in ("plain", "plain8") else row.method
        options: dict[str, Any] = dict(threads)
        if system in USES_INT8:
            own = {key: _parse_value(value) for key, value in self.decoding.items()}
            options |= {"int8": USES_INT8[system], **own}
        if system == "ct2f":
            options["precision"] = "float32"
        model = "own" if row.own_model and system in USES_INT8 else row.model
        return client.request("decode", model=model, method=method, sentences=count, split=split, **options)

    def best_threads(self, client: WorkerClient, row: Row, system: str) -> dict[str, int]:
        """Return the fastest of: threads within a product, or (CTranslate2 and heedful) workers of one thread each."""
        if client.name in ("joey", "onmt") and not row.free_threads:
            return {"threads": self.options.threads}
        choices: list[dict[str, int]] = [{"threads": n} for n in range(1, self.options.threads + 1)]
        if client.name in ("ct2", "heedful") and self.options.threads > 1 and row.method != "single":
            choices.append({"threads": 1, "workers": self.options.threads})
        count = min(row.sentences, self.options.sentences, 30 if row.method == "single" else 256)
        seconds = []
        for choice in choices:
            self.decode(client, row, system, min(count, 16), choice)  # warm-up
            seconds.append(min(self.decode(client, row, system, count, choice)["seconds"] for _ in range(2)))
        return choices[seconds.index(min(seconds))]

    def evaluate_outputs(
        self, row: Row, system: str, outputs: list[str], reference: list[str] | None, threads: Mapping[str, int]
    ) -> dict[str, Any]:
        """Return BLEU of the outputs, and how many are identical to OpenNMT-py's."""
        from heedful.metrics import evaluate

        (self.results / f"{row.name}.{system}.txt").write_text("".join(f"{line}\n" for line in outputs), "utf-8")
        notes: dict[str, Any] = {
            "sentences": len(outputs),
            "threads": "x".join(str(threads[key]) for key in ("workers", "threads") if key in threads),
        }
        if paths.text_file(paths.TEST, paths.TARGET).is_file():
            targets = paths.read_lines(paths.TEST, paths.TARGET, len(outputs))
            notes["bleu"] = evaluate(["bleu"], outputs, targets)[0].value
        if reference is not None:
            notes["same"] = sum(a == b for a, b in zip(outputs, reference, strict=True))
        return notes

    def measure_startup(self, row: Row) -> dict[str, Any]:
        """Measure the time from the command to the first line of output, for one sentence."""
        rounds = []
        for number in range(self.options.rounds):
            results = {system: {"rate": 1 / MEASURE_START[system](row.model)} for system in row.systems}
            rounds.append(results)
            self.log_round(row, number, results)
        return {"rounds": rounds, "notes": {}}

    def measure_memory(self, row: Row) -> dict[str, Any]:
        """Measure the peak memory of a process that loads a model and translates lines of the training data."""
        rounds: list[dict[str, dict[str, float]]] = []
        count = row.sentences if not self.options.quick else self.options.sentences
        for number in range(self.options.rounds):
            results = {}
            for system in row.systems:
                name = WORKER.get(system, system)
                with self.workers(name) as clients:
                    reply = self.decode(clients[name], row, system, count, {"threads": self.options.threads}, "train")
                results[system] = {"rate": 1 / reply["peak_rss_mb"]}
            rounds.append(results)
            self.log_round(row, number, results)
        return {"rounds": rounds, "notes": {}}

    def measure_time_to_bleu(self, row: Row) -> dict[str, Any]:
        """Measure minutes of training to a validation BLEU of 30; validations take no time on either side."""
        target, limit = self.options.bleu, self.options.minutes * 60
        curves: dict[str, list[list[float]]] = {"heedful": [], "onmt": []}
        running = {"heedful", "onmt"}
        with self.workers("onmt", "heedful") as clients:
            while running:
                for system in sorted(running):
                    is_heedful = system == "heedful"
                    window = {"seconds": self.options.slice} if is_heedful else {"steps": self.options.steps}
                    model = str(self.options.recipe) if is_heedful else "R"
                    reply = clients[system].request("train", model=model, threads=self.options.threads, **window)
                    if is_heedful:
                        curves[system] = reply["curve"]
                    else:
                        curves[system].append([reply["total_seconds"], self.validation_bleu(clients[system])])
                    print(f"{row.name} {system}: {curves[system][-1:]}", file=sys.stderr, flush=True)
                    reached = time_to_bleu(curves[system], target) is not None
                    if reached or reply.get("ended") or reply["total_seconds"] > limit:
                        running.discard(system)
            if not self.options.quick and not paths.checkpoint("R").is_file():
                clients["onmt"].request("keep", model="R")  # train model R only once
        results, notes = {}, {}
        for system, curve in curves.items():
            seconds = time_to_bleu(curve, target)
            notes[system] = {"curve": curve, "reached": seconds is not None}
            if seconds is None and (system == "heedful" or not curve):
                raise WorkerError(f"{system} did not reach BLEU {target}; its curve: {curve}")
            results[system] = {"rate": 60 / (seconds or curve[-1][0])}
        return {"rounds": [results], "notes": notes}

    def validation_bleu(self, client: WorkerClient) -> float:
        """Return the validation BLEU of the weights that are being trained."""
        from heedful.metrics import evaluate

        count = self.options.valid
        references = paths.read_lines("val", paths.TARGET, count)
        reply = client.request(
            "decode", model="R", method="greedy", sentences=count, split="val", live=True, threads=self.options.threads
        )
        return evaluate(["bleu"], reply["outputs"], references)[0].value

    def log_round(self, row: Row, number: int, results: Mapping[str, Mapping[str, float]]) -> None:
        rates = ", ".join(f"{system} {values['rate']:.4g}" for system, values in results.items())
        print(f"{row.name} {number + 1}/{self.options.rounds}: {rates}", file=sys.stderr, flush=True)


def time_to_bleu(curve: list[list[float]], target: float) -> float | None:
    """Return when a curve of (seconds, BLEU) first reaches a target, by linear interpolation.

    >>> time_to_bleu([[10.0, 20.0], [20.0, 40.0]], 30.0)
    15.0
    """
    before = [0.0, 0.0]
    for point in curve:
        if point[1] >= target:
            return before[0] + (point[0] - before[0]) * (target - before[1]) / (point[1] - before[1])
        before = point
    return None


def _parse_value(text: str) -> Any:
    """Return a setting from the command line as a number or boolean where it is one."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def prepare_rows(rows: list[Row], threads: int) -> None:
    """Create what is missing: subwords, environments, and the weights that these rows decode with."""
    import convert_onmt
    import environments
    import prepare

    prepare.main()
    systems = {system for row in rows for system in row.systems}
    for peer in sorted({ENVIRONMENT[system] for system in systems if system in ENVIRONMENT}):
        environments.create(peer)
    models = sorted({row.model for row in rows if row.kind in ("decode", "traced", "startup", "memory")})
    for model in models:
        if not paths.checkpoint(model).is_file():
            environments.create("onmt")
            print(f"training model {model} with OpenNMT-py", file=sys.stderr, flush=True)
            script = str(paths.HERE / "train_onmt.py")
            command = [str(paths.interpreter("onmt")), script, model, "--threads", str(threads)]
            subprocess.run(command, check=True)
        convert_onmt.convert(model)
    if any(row.own_model for row in rows):
        print("training our own model (own.toml)", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "heedful", "train", str(paths.HERE / "own.toml")]
        files = [
            f'data.{split}=["{paths.text_file(name, "en")}", "{paths.text_file(name, "de")}"]'
            for split, name in (("train", "train"), ("valid", "val"))
        ]
        subprocess.run([*command, *files, "--out", str(paths.model_folder("own"))], check=True)


def machine() -> str:
    """Return the processor's name and number of cores."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = info.read_text(encoding="utf-8").splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    return f"{name}, {os.cpu_count()} cores"


def git_commit() -> str:
    """Return the commit, with a + if files differ from it."""
    git = ["git", "-C", str(paths.ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=False)
    return (head.stdout.strip() or "unknown") + ("+" if changed.stdout.strip() else "")


def results_folder(quick: bool) -> Path:
    """Return the folder of the records; those of quick runs and of limited kernels are kept apart."""
    limit = f"-{KERNELS}" if KERNELS else ""
    return paths.FOLDER / f"results{'-quick' if quick else ''}{limit}"


def write_report(folder: Path, out: Path) -> None:
    """Write RESULTS.md and the picture from all records."""
    import environments

    by_row = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")}
    records = [by_row[row.name] for row in ROWS if row.name in by_row]
    if not records:
        raise SystemExit(f"no records in {folder}; run some rows first")
    out.mkdir(parents=True, exist_ok=True)
    growth = ""
    if (out / "growth.png").is_file():
        growth = (
            "## How cost grows\n\n![cost against length, batch and vocabulary](growth.png)\n\n"
            "In numbers: [growth.md](growth.md). Training memory against the size of the corpus:"
            " [memory_corpus.md](memory_corpus.md)."
        )
    (out / "RESULTS.md").write_text(make_document(records, environments.versions(), growth), encoding="utf-8")
    draw(records, out / "results.png")


def default_report_folder(quick: bool) -> Path:
    """Return where RESULTS.md is written: with limited kernels (HEEDFUL_KERNELS=avx2), not over that of the package."""
    if KERNELS:
        return paths.FOLDER / f"kernels-{KERNELS}"
    return paths.FOLDER / "quick" if quick else paths.ROOT / "benchmarks"


def kernels_in_use() -> str:
    """Return the instructions of the int8 kernels, and those that CTranslate2 is held to."""
    from heedful.kernels import loader

    library, limit = loader.library(), os.environ.get("CT2_FORCE_CPU_ISA")
    name = "none" if library is None else loader.int8_name()
    return name + (f"; CTranslate2 held to {limit}" if limit else "")


def lost_rows(folder: Path, out: Path, rows: list[Row]) -> list[str]:
    """Return rows of RESULTS.md that would disappear because their records are on another machine."""
    path = out / "RESULTS.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    available = {row.name for row in rows} | {path.stem for path in folder.glob("*.json")}
    return [row.name for row in ROWS if f"| {row.title} |" in text and row.name not in available]


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--rows", default="all", help="comma-separated names: " + ", ".join(BY_NAME))
    add("--rounds", type=int, default=0, help="per row; default 5, quick: 2")
    add("--seconds", type=float, default=0.0, help="length of a training window; default 30, quick: 3")
    add("--sentences", type=int, default=0, help="maximum number to translate; default 1000, quick: 20")
    add("--threads", type=int, default=2)
    add("--bleu", type=float, default=30.0, help="bleu30: the BLEU to reach")
    add("--minutes", type=float, default=90.0, help="bleu30: time limit")
    add("--recipe", type=Path, default=paths.HERE / "bleu30.toml", help="bleu30: recipe of heedful")
    add("--slice", type=float, default=60.0, help="bleu30: seconds per turn of heedful")
    add("--steps", type=int, default=145, help="bleu30: steps per turn of OpenNMT-py")
    add("--valid", type=int, default=1014, help="bleu30: number of validation sentences")
    add("--quick", action="store_true", help="only check that it works")
    add("--out", type=Path, help="folder for RESULTS.md; default benchmarks, quick: HEEDFUL_RUNS/bench/quick")
    add("--worker", action="append", default=[], metavar="NAME=COMMAND", help="replace a worker")
    add("--decoding", action="append", default=[], metavar="KEY=VALUE", help="decoding option of heedful")
    add("--no-prepare", action="store_true", help="do not create what is missing")
    add("--report", action="store_true", help="only write RESULTS.md from the records")
    return parser


def main(arguments: list[str] | None = None) -> int:
    options = make_parser().parse_args(arguments)
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.seconds = options.seconds or (3.0 if options.quick else 30.0)
    options.sentences = options.sentences or (20 if options.quick else 1000)
    options.out = options.out or default_report_folder(options.quick)
    names = list(BY_NAME) if options.rows == "all" else options.rows.split(",")
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise SystemExit(f"no row named {', '.join(unknown)}; known: {', '.join(BY_NAME)}")
    rows = [BY_NAME[name] for name in names]
    rows = [] if options.report else sorted(rows, key=lambda row: row.kind != "bleu")  # it trains R for the others
    benchmark, failed = Benchmark(options), False
    if lost := lost_rows(benchmark.results, options.out, rows):
        raise SystemExit(
            f"{options.out / 'RESULTS.md'} would lose rows measured on another machine: {', '.join(lost)};"
            " choose another folder with --out"
        )
    for row in rows:
        benchmark.results.mkdir(parents=True, exist_ok=True)
        if not options.no_prepare:
            prepare_rows([row], options.threads)
        header = {"row": row.name, "commit": git_commit(), "machine": machine(), "threads": options.threads}
        header["kernels"] = kernels_in_use()
        try:
            record = {**header, **benchmark.measure(row), "when": datetime.now(UTC).isoformat(timespec="seconds")}
        except WorkerError as error:  # continue with the other rows
            print(f"{row.name}: {error}", file=sys.stderr, flush=True)
            failed = True
            continue
        text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
        (benchmark.results / f"{row.name}.json").write_text(text, encoding="utf-8")
        write_report(benchmark.results, options.out)
    if options.report:
        write_report(benchmark.results, options.out)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

"""Runs cases in a worker process, watches its time and memory, and replaces it when it dies."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fuzz.case import LINK, OUTSIDE, WORK, Case, refresh_hashes, write_files
from fuzz.corpus import RECIPES
from fuzz.judge import Outcome

SECONDS = 20.0  # of processor time
IDLE_SECONDS = 120.0  # neither computing nor waiting for a processor, of which a busy machine has too few
MEMORY = 1_500_000_000  # bytes, torch and all modules included
KILL_MEMORY = 2_500_000_000
RESTART_MEMORY = 800_000_000  # of an idle worker: memory that earlier cases left
CASES_PER_WORKER = 3_000
SECRET = b"the secret\tle secret\n"
STRANGER = "raise SystemExit('code of a stranger ran')\n"
Files = Mapping[str, bytes]


class Supervisor:
    """A worker process and the folder in which its cases run."""

    def __init__(self, intact: Mapping[str, Files]) -> None:
        self.intact = intact
        self.base = Path(tempfile.mkdtemp(prefix="heedful-fuzz-"))
        (self.base / "stranger").mkdir()
        (self.base / "stranger" / "evil.py").write_text(STRANGER)
        (self.base / "stranger" / "__init__.py").write_text(STRANGER)
        self.process: subprocess.Popen[str] | None = None
        self.cases = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        shutil.rmtree(self.base, ignore_errors=True)

    def stop(self) -> None:
        """End the worker."""
        if self.process is not None:
            self.process.kill()
            self._forget(self.process)

    def _forget(self, process: subprocess.Popen[str]) -> int:
        """Wait for a worker that ends, and close its pipes."""
        code = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        self.process = None
        return code

    def run(self, case: Case) -> Outcome:
        """Run one case and return what was observed."""
        files = dict(case.files)
        for folder, model in case.folders.items():
            files = refresh_hashes(files, folder, self.intact[model])
        place = self.base / "case"
        shutil.rmtree(place, ignore_errors=True)
        (place / WORK).mkdir(parents=True)
        (place / OUTSIDE).mkdir()
        (place / OUTSIDE / "secret.tsv").write_bytes(SECRET)
        for model in set(case.folders.values()):
            write_files({f"{model}/{name}": data for name, data in self.intact[model].items()}, place / OUTSIDE)
        write_files(files, place / WORK)
        before = snapshot(place)
        reply = self._ask(case, place)
        created, changed = compare(before, snapshot(place))
        return Outcome(reply, created, changed, self._empty_temporary())

    def _empty_temporary(self) -> list[str]:
        paths = sorted((self.base / "tmp").iterdir())
        for path in paths:
            _remove(path)
        return [path.name for path in paths]

    def _ask(self, case: Case, place: Path) -> dict[str, Any]:
        worker = self._worker()
        assert worker.stdin is not None
        request = {
            "folder": str(place / WORK),
            "argv": case.argv,
            "stdin": base64.b64encode(case.stdin).decode("ascii"),
            "outside": os.path.realpath(place / OUTSIDE),
        }
        native = self.base / "native"
        at = native.stat().st_size
        worker.stdin.write(json.dumps(request) + "\n")
        worker.stdin.flush()
        reply = self._watch(worker)
        reply["native"] = native.read_bytes()[at : at + 3_000].decode("utf-8", "replace")
        return reply

    def _watch(self, worker: subprocess.Popen[str]) -> dict[str, Any]:
        """Wait for the reply; end the worker when it takes too long or too much."""
        assert worker.stdout is not None
        start, peak, frame = time.monotonic(), 0, ""
        cpu_start, queued_start = cpu_seconds(worker.pid), queued_seconds(worker.pid)
        while True:
            ready, _, _ = select.select([worker.stdout], [], [], 0.05)
            if ready:
                line = worker.stdout.readline()
                if line:
                    reply: dict[str, Any] = json.loads(line)
                    return {**reply, "frame": reply["frame"] or frame, "killed": ""}
                code = self._forget(worker)
                name = signal.Signals(-code).name if code < 0 else f"exit {code}"
                return _dead(f"died: {name}", self._frames(0), 0.0, peak)
            memory = resident(worker.pid)
            peak = max(peak, memory)
            if memory > MEMORY and not frame:
                frame = self._frames(worker.pid)
            cpu = cpu_seconds(worker.pid) - cpu_start
            idle = time.monotonic() - start - cpu - (queued_seconds(worker.pid) - queued_start)
            reason = "memory" if memory > KILL_MEMORY else ""
            if cpu > SECONDS or idle > IDLE_SECONDS:
                reason = "time"
            if reason:
                frame = frame or self._frames(worker.pid)
                self.stop()
                return _dead(reason, frame, cpu, peak)

    def _frames(self, pid: int) -> str:
        """Return the innermost frame of heedful that the worker's last dump shows; with a pid, ask it for a dump."""
        path = self.base / "frames"
        at = 0
        if pid:
            at = path.stat().st_size
            os.kill(pid, signal.SIGUSR1)
            time.sleep(0.3)
        text = path.read_text(errors="replace")[at:]
        main = text.rpartition("Current thread")[2] or text
        for line in main.splitlines():
            if "/heedful/" in line and "/fuzz/" not in line:
                file, _, function = line.strip().partition('", line ')
                module = file.rpartition("/heedful/")[2].removesuffix(".py").replace("/", ".")
                return f"{module}:{function.rpartition(' in ')[2]}"
        return "?"

    def _worker(self) -> subprocess.Popen[str]:
        old = self.process
        if old is not None and (self.cases >= CASES_PER_WORKER or resident(old.pid) > RESTART_MEMORY):
            self.stop()
        if self.process is None:
            self.process = self._start()
            self.cases = 0
        self.cases += 1
        return self.process

    def _start(self) -> subprocess.Popen[str]:
        for name in ("tmp", "cache", "home", "data", "jobs", "served"):
            shutil.rmtree(self.base / name, ignore_errors=True)
            (self.base / name).mkdir()
        for model in sorted(set(self.intact) & set(RECIPES)):
            write_files(self.intact[model], self.base / "served" / model)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(self.base)))),
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "COLUMNS": "100",
            "TMPDIR": str(self.base / "tmp"),
            "HOME": str(self.base / "home"),
            "HEEDFUL_CACHE": str(self.base / "cache"),
            "HEEDFUL_DATA": str(self.base / "data"),
            "HEEDFUL_RUNS": str(self.base / "data"),
            "MPLCONFIGDIR": str(self.base / "home"),
            "MPLBACKEND": "agg",
        }
        script = Path(__file__).with_name("worker.py")
        process = subprocess.Popen(
            [sys.executable, str(script), str(self.base)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError(f"the worker does not start:\n{(self.base / 'native').read_text()[-3_000:]}")
        self._empty_temporary()  # modules may leave files there when they are imported
        return process


def _dead(reason: str, frame: str, seconds: float, peak: int) -> dict[str, Any]:
    return {
        "killed": reason, "frame": frame, "code": -1, "exception": "", "traceback": "", "seconds": seconds,
        "cpu": seconds, "peak": peak, "stdout": "", "stderr": "", "sizes": [0, 0], "controls": ["", ""], "events": [],
        "warnings": [],
    }  # fmt: skip


def resident(pid: int) -> int:
    """Return the resident memory of a process, in bytes; 0 when it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    except (OSError, IndexError):
        return 0


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process, in seconds."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def queued_seconds(pid: int) -> float:
    """Return how long a process has waited for a processor, in seconds."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def snapshot(place: Path) -> dict[str, bytes]:
    """Return the files, links and empty folders below a folder."""
    content: dict[str, bytes] = {}
    for root, folders, names in os.walk(place):
        for name in names:
            path = Path(root, name)
            if path.is_symlink():
                content[str(path.relative_to(place))] = LINK + os.fsencode(path.readlink())
            else:
                content[str(path.relative_to(place))] = path.read_bytes() if path.is_file() else b"special"
        if not names and not folders:
            content[str(Path(root).relative_to(place)) + "/"] = b""
    return content


def compare(before: Files, after: Files) -> tuple[list[str], list[str]]:
    """Return the files that are new, and those that changed or are gone."""
    created = sorted(name for name in after if name not in before)
    changed = sorted(name for name, content in before.items() if after.get(name) != content and not name.endswith("/"))
    return created, changed


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)

"""The process that runs cases: one JSON object per line in, one per line out.

torch and heedful are imported once. Each case runs through the program's real entry point, with its own arguments,
standard streams and current folder. What a case reads, imports and starts is observed through audit events.
"""

from __future__ import annotations

import base64
import faulthandler
import importlib
import io
import json
import os
import pkgutil
import signal
import sys
import time
import traceback
import warnings
from functools import cache
from pathlib import Path
from typing import Any

HEAD = 3_000  # characters of an output that are reported
CONTROL = {*range(0x20), 0x7F, *range(0x80, 0xA0)} - {0x09, 0x0A, 0x0D}
SUSPICIOUS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect", "socket.getaddrinfo")


class Observer:
    """Collects what a case opens outside its folder, and what it starts or connects to."""

    def __init__(self) -> None:
        self.outside = ""
        self.events: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.outside:
            return
        if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if path.startswith(self.outside):
                self._add(f"opened {Path(path).name} outside")
            elif "/stranger/" in path:  # importlib raises no event of its own
                self._add("imported a stranger's module")
        elif event in SUSPICIOUS:
            self._add(f"{event} in {innermost_frame(traceback.extract_stack())}")

    def _add(self, text: str) -> None:
        if text not in self.events:
            self.events.append(text)


def innermost_frame(stack: traceback.StackSummary) -> str:
    """Return the innermost frame of heedful in a stack as `room.module:function`."""
    names = [
        f"{Path(frame.filename).with_suffix('').as_posix().rpartition('/heedful/')[2].replace('/', '.')}:{frame.name}"
        for frame in stack
        if "/heedful/" in frame.filename
    ]
    return names[-1] if names else "?"


def describe_error(error: BaseException) -> str:
    """Return `module.Name` of an exception, or what a broken promise says."""
    if type(error).__name__ == "BrokenPromiseError":
        return str(error)
    return f"{type(error).__module__}.{type(error).__name__}".removeprefix("builtins.")


def start_command(argv: list[str]) -> None:
    """Run a command of heedful, or what is attacked in place of one."""
    from fuzz.http_target import ask_client, serve_request
    from fuzz.training_target import train_job
    from heedful.cli import main

    verb = argv[0] if argv else ""
    if verb == "http":
        serve_request(Path.cwd().parents[1])
    elif verb == "client":
        ask_client(argv[1:])
    elif verb == "training-worker":
        train_job(argv[1])
    else:
        main()


def peak_memory() -> int:
    """Return the largest resident memory since `reset_peak`, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return 0


def reset_peak() -> None:
    """Start measuring the largest resident memory anew."""
    Path("/proc/self/clear_refs").write_text("5")


def run(request: dict[str, Any], observer: Observer) -> dict[str, Any]:
    """Run one case and report how it ended."""
    os.chdir(request["folder"])
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace") for _ in range(2))
    streams = (sys.argv, sys.stdin, sys.stdout, sys.stderr)
    sys.argv = ["heedful", *request["argv"]]
    sys.stdin = io.TextIOWrapper(io.BytesIO(base64.b64decode(request["stdin"])), encoding="utf-8")
    sys.stdout, sys.stderr = stdout, stderr
    reply: dict[str, Any] = {"code": 0, "exception": "", "frame": "", "traceback": ""}
    caught: list[warnings.WarningMessage] = []
    reset_peak()
    start, cpu = time.perf_counter(), time.process_time()
    observer.events, observer.outside = [], request["outside"]
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
                warnings.simplefilter("ignore", category)  # Python does not show them by default
            start_command(request["argv"])
    except SystemExit as end:
        reply["code"] = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        reply |= {
            "code": -1,
            "exception": describe_error(error),
            "frame": innermost_frame(traceback.extract_tb(error.__traceback__)),
            "traceback": traceback.format_exc()[-HEAD:],
        }
    observer.outside = ""
    reply |= {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu, "peak": peak_memory()}
    sys.argv, sys.stdin, sys.stdout, sys.stderr = streams
    texts = [_text(stream) for stream in (stdout, stderr)]
    reply |= {
        "stdout": texts[0][:HEAD],
        "stderr": texts[1][:HEAD],
        "sizes": [len(text) for text in texts],
        "controls": [_controls(text) for text in texts],
        "bad_json": _bad_json(texts[0]) if "--json" in request["argv"] and reply["code"] == 0 else "",
        "events": observer.events,
        "warnings": [f"{w.category.__name__} at {_short(w.filename)}: {w.message}"[:300] for w in caught],
    }
    _restore()
    return reply


def _text(stream: io.TextIOWrapper) -> str:
    if stream.closed:
        return ""
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode("utf-8", "replace")


def _bad_json(text: str) -> str:
    """Return why an output is not JSON, whole or line by line; NaN and infinity are not JSON."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError as error:
        try:
            for line in text.splitlines():
                json.loads(line, parse_constant=refuse)
        except ValueError:
            return str(error)
    return ""


def _controls(text: str) -> str:
    return next((repr(c) for c in text[:200_000] if ord(c) in CONTROL), "")


def _short(filename: str) -> str:
    return "/".join(Path(filename).with_suffix("").parts[-2:])


def _restore() -> None:
    """Undo what a command may leave in the process, so that the next case starts like this one."""
    import torch

    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.modules["heedful.batch.job"]._open_model.cache_clear()  # folders of cases have the same name
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def _import_everything() -> None:
    import heedful

    for module in pkgutil.walk_packages(heedful.__path__, "heedful."):
        if module.name.rpartition(".")[2].isidentifier() and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    import typer.main

    import heedful.batch.local
    from fuzz.training_target import run_parts

    heedful.batch.local.run_local = run_parts  # processes would have to import torch
    typer.main.get_command = cache(typer.main.get_command)  # building the commands takes longer than most cases


def serve() -> None:
    """Answer requests until standard input ends; descriptors 1 and 2 belong to the cases, and go to files."""
    import resource  # not on Windows, where this module is imported but never runs

    requests = os.fdopen(os.dup(0), encoding="utf-8")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    scratch = Path(sys.argv[1])
    native = os.open(scratch / "native", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for descriptor in (1, 2):
        os.dup2(native, descriptor)
    frames = (scratch / "frames").open("w")
    faulthandler.enable(frames)
    faulthandler.register(signal.SIGUSR1, frames)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _import_everything()
    import torch

    torch.set_num_threads(1)
    observer = Observer()
    print(json.dumps({"ready": os.getpid()}), file=replies, flush=True)
    for line in requests:
        print(json.dumps(run(json.loads(line), observer)), file=replies, flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    serve()

"""The worker's side of the protocol: one JSON command per line in, one JSON reply per line out.

A worker lives as long as its row is measured. Imports only the standard library: every peer's environment imports
this file.

    {"command": "train", "model": "R", "seconds": 30}   -> {"tokens": ..., "seconds": ..., "peak_rss_mb": ...}
    {"command": "decode", "model": "R", "method": "greedy", "sentences": 1000, "threads": 2}
                                                        -> {"seconds": ..., "outputs": [...]}
    {"command": "quit"}

Training continues from command to command: the framework's own loop runs, and pauses between two steps while other
systems are measured. Errors are answered with {"error": "..."}.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

Message = dict[str, Any]
WARMUP_STEPS = 5  # before the first window: caches fill, buffers are allocated


def peak_rss_mb() -> float:
    """Return the peak memory of this process; `getrusage` would include its parent's at the time of the fork."""
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Channel:
    """Standard input and output; what libraries print goes to standard error."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def read(self) -> Message:
        line = sys.stdin.readline()
        return dict(json.loads(line)) if line else {"command": "quit"}

    def write(self, reply: Message) -> None:
        print(json.dumps(reply, ensure_ascii=False), file=self._out, flush=True)


class Worker:
    """Base class: a subclass has a method `do_COMMAND` per command, and `run_training` if it can train."""

    def __init__(self) -> None:
        self.channel = Channel()
        self.clock: Clock | None = None

    def serve(self) -> None:
        while True:
            self.handle(self.channel.read())

    def handle(self, message: Message) -> None:
        name = message.pop("command")
        if name == "quit":
            os._exit(0)  # possibly from within a framework's training loop
        try:
            reply = getattr(self, f"do_{name}")(**message)
        except Exception:
            reply = {"error": traceback.format_exc()}
        if reply is not None:
            self.channel.write(reply)

    def do_train(self, model: str, seconds: float = 0.0, steps: int = 0, threads: int = 2) -> Message | None:
        """Start the training; the first call does not return, later ones arrive in `Clock.on_step_end`."""
        if self.clock is not None:
            if self.clock.model != model:
                return {"error": f"this worker trains {self.clock.model}; start another for {model}"}
            self.clock.open_window(seconds, steps)
            return None
        self.clock = Clock(self, model)
        self.clock.open_window(seconds, steps)
        try:
            self.run_training(model, threads, self.clock)
        except Exception:
            self.clock = None
            raise
        self.clock.on_training_end()
        return None

    def run_training(self, model: str, threads: int, clock: Clock) -> None:
        raise NotImplementedError


class Clock:
    """Counts tokens and time while a window is open. The training loop calls `on_step_end` after each step."""

    def __init__(self, worker: Worker, model: str) -> None:
        self.worker = worker
        self.model = model
        self.extra: Message = {}  # further fields of the reply
        self.total = 0.0  # seconds of training so far, warm-up included
        self._warmup = WARMUP_STEPS
        self._waiting = False
        self._mark = time.perf_counter()

    def open_window(self, seconds: float, steps: int) -> None:
        """Measure until this many seconds or steps have passed."""
        self._seconds, self._steps = seconds, steps
        self._waiting = False
        self._reset()

    def _reset(self) -> None:
        self.tokens = self.steps = 0
        self.seconds = 0.0
        self._mark = time.perf_counter()

    def count_tokens(self, tokens: int) -> None:
        """Add a batch with this many target tokens, end tokens included."""
        self.tokens += tokens

    def exclude(self, work: Callable[[], Any]) -> Any:
        """Run something that is not training, such as a validation, without counting its time."""
        self._lap()
        result = work()
        self._mark = time.perf_counter()
        return result

    def _lap(self) -> None:
        now = time.perf_counter()
        self.seconds += now - self._mark
        self.total += now - self._mark
        self._mark = now

    def on_step_end(self) -> None:
        """If the window is over, reply and wait until another one is opened."""
        self._lap()
        self.steps += 1
        if self._warmup:
            self._warmup -= 1
            if not self._warmup and not self._steps:  # a window of steps counts all of them
                self._reset()
            return
        if (self._steps and self.steps >= self._steps) or (self._seconds and self.seconds >= self._seconds):
            self._reply()

    def _reply(self, **fields: Any) -> None:
        self.worker.channel.write(
            {
                "tokens": self.tokens,
                "steps": self.steps,
                "seconds": self.seconds,
                "total_seconds": self.total,
                "peak_rss_mb": peak_rss_mb(),
                **self.extra,
                **fields,
            }
        )
        self._waiting = True
        while self._waiting:
            self.worker.handle(self.worker.channel.read())

    def on_training_end(self) -> None:
        """Answer every further window as empty."""
        self._lap()
        while True:
            self._reply(ended=True)
            self.tokens = self.steps = 0

"""How the conductor and its workers talk: one JSON command a line in, one JSON answer a line out.

A worker lives as long as its row. Only the standard library: every environment imports it.

    {"do": "train", "model": "R", "seconds": 30}    -> {"tokens": ..., "seconds": ..., "peak_rss_mb": ...}
    {"do": "decode", "model": "R", "how": "greedy", "sentences": 1000, "threads": 2}
                                                    -> {"seconds": ..., "outputs": [...]}
    {"do": "quit"}

Training goes on from where it was: the framework's own loop runs, and stands still between two steps while
somebody else is measured. A mistake is answered with {"error": "..."}.
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

Command = dict[str, Any]
WARM = 5  # steps before the first window: caches fill, buffers are made


def peak_rss_mb() -> float:
    """The most memory this process has held; `getrusage` also counts what its parent held when it began."""
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Line:
    """Standard input and output; whatever a library prints goes to standard error."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def read(self) -> Command:
        line = sys.stdin.readline()
        return dict(json.loads(line)) if line else {"do": "quit"}

    def write(self, answer: Command) -> None:
        print(json.dumps(answer, ensure_ascii=False), file=self._out, flush=True)


class Worker:
    """A subclass has a method `do_...` for each command it knows, and `learn` if it can train."""

    def __init__(self) -> None:
        self.line = Line()
        self.clock: Clock | None = None

    def serve(self) -> None:
        while True:
            self.answer(self.line.read())

    def answer(self, command: Command) -> None:
        name = command.pop("do")
        if name == "quit":
            os._exit(0)  # perhaps from within somebody's training loop
        try:
            found = getattr(self, f"do_{name}")(**command)
        except Exception:
            found = {"error": traceback.format_exc()}
        if found is not None:
            self.line.write(found)

    def do_train(self, model: str, seconds: float = 0.0, steps: int = 0, threads: int = 2) -> Command | None:
        """The first call begins the training and never comes back; later ones arrive in `Clock.between`."""
        if self.clock is not None:
            if self.clock.model != model:
                return {"error": f"this worker trains {self.clock.model}; start another for {model}"}
            self.clock.open(seconds, steps)
            return None
        self.clock = Clock(self, model)
        self.clock.open(seconds, steps)
        try:
            self.learn(model, threads, self.clock)
        except Exception:
            self.clock = None
            raise
        self.clock.over()
        return None

    def learn(self, model: str, threads: int, clock: Clock) -> None:
        raise NotImplementedError


class Clock:
    """Counts tokens and time while a window is open. The training loop calls `between` after each step."""

    def __init__(self, worker: Worker, model: str) -> None:
        self.worker = worker
        self.model = model
        self.more: Command = {}  # what else an answer says
        self.total = 0.0  # seconds of training so far, warm-up included
        self._warm = WARM
        self._waiting = False
        self._mark = time.perf_counter()

    def open(self, seconds: float, steps: int) -> None:
        self._seconds, self._steps = seconds, steps
        self._waiting = False
        self._begin()

    def _begin(self) -> None:
        self.tokens = self.steps = 0
        self.seconds = 0.0
        self._mark = time.perf_counter()

    def saw(self, tokens: int) -> None:
        """A batch of so many target tokens, end tokens included."""
        self.tokens += tokens

    def outside(self, work: Callable[[], Any]) -> Any:
        """Do something that is no training, such as a validation: its time does not count."""
        self._lap()
        found = work()
        self._mark = time.perf_counter()
        return found

    def _lap(self) -> None:
        now = time.perf_counter()
        self.seconds += now - self._mark
        self.total += now - self._mark
        self._mark = now

    def between(self) -> None:
        """After a step: when the window is over, answer and wait until another is opened."""
        self._lap()
        self.steps += 1
        if self._warm:
            self._warm -= 1
            if not self._warm and not self._steps:  # who counts steps wants them all
                self._begin()
            return
        if (self._steps and self.steps >= self._steps) or (self._seconds and self.seconds >= self._seconds):
            self._answer()

    def _answer(self, **more: Any) -> None:
        self.worker.line.write(
            {
                "tokens": self.tokens,
                "steps": self.steps,
                "seconds": self.seconds,
                "total_seconds": self.total,
                "peak_rss_mb": peak_rss_mb(),
                **self.more,
                **more,
            }
        )
        self._waiting = True
        while self._waiting:
            self.worker.answer(self.worker.line.read())

    def over(self) -> None:
        """The training has come to its end: every further window is empty."""
        self._lap()
        while True:
            self._answer(ended=True)
            self.tokens = self.steps = 0

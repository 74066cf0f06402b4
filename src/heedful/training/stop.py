"""Ctrl-C and SIGTERM: heard at once, obeyed where nothing is lost."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class Stop:
    """While entered, `asked` turns True at SIGINT or SIGTERM.

    A second Ctrl-C interrupts at once, unless other processes take part: `torchrun` sends a second one by
    itself. Outside of the main thread Python gives no signals, and nothing changes.
    """

    def __init__(self, impatient: bool = True) -> None:
        self.asked = False
        self.impatient = impatient
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            for which in (signal.SIGINT, signal.SIGTERM):
                self._before[which] = signal.signal(which, self._hear)
        return self

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if self.asked and self.impatient and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for which, handler in self._before.items():
            signal.signal(which, handler)  # type: ignore[arg-type]  # what signal() gave us

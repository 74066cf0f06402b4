"""SIGINT and SIGTERM handling: a signal requests a stop, and the loop stops at the next safe point."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class SignalHandler:
    """Context manager that sets `stop_requested` on SIGINT or SIGTERM instead of interrupting.

    With `interrupt_on_second`, a second Ctrl-C raises KeyboardInterrupt at once. Multi-process runs disable it,
    because `torchrun` itself sends a second signal. Outside the main thread, where Python delivers no signals,
    this does nothing.
    """

    def __init__(self, interrupt_on_second: bool = True) -> None:
        self.stop_requested = False
        self.interrupt_on_second = interrupt_on_second
        self._previous_handlers: dict[signal.Signals, object] = {}

    def __enter__(self) -> SignalHandler:
        if threading.current_thread() is threading.main_thread():
            for signum in (signal.SIGINT, signal.SIGTERM):
                self._previous_handlers[signum] = signal.signal(signum, self._handle)
        return self

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if self.stop_requested and self.interrupt_on_second and signum == signal.SIGINT:
            previous = self._previous_handlers.get(signal.SIGINT)
            if callable(
                previous
            ):  # raises KeyboardInterrupt; that of the program does so once, and then lets it clean up
                previous(signum, frame)
                return
            raise KeyboardInterrupt
        self.stop_requested = True

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for signum, handler in self._previous_handlers.items():
            signal.signal(signum, handler)  # type: ignore[arg-type]  # what signal() returned

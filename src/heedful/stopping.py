"""What ends a generating call early: a time limit, or a caller that cancels it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from time import monotonic

from heedful.errors import DecodingCancelledError, DecodingError, DecodingTimeoutError


class StopCondition:
    """Ends a generating call between two decoding steps; without arguments, never. Subclasses may listen to the steps.

    The time limit `max_seconds` starts when the condition is made. `should_stop` is an event, or a function that is
    called before every step, in the threads that decode. One condition serves all batches and threads of a call.

    >>> cancelled = threading.Event()
    >>> stop = StopCondition(should_stop=cancelled)
    >>> cancelled.set()
    >>> stop.check(3, 100)
    Traceback (most recent call last):
    ...
    heedful.errors.DecodingCancelledError: decoding was cancelled after 3 of at most 100 steps
    """

    def __init__(
        self, max_seconds: float | None = None, should_stop: Callable[[], bool] | threading.Event | None = None
    ) -> None:
        if max_seconds is not None and not (math.isfinite(max_seconds) and max_seconds > 0):
            raise DecodingError(f"max_seconds = {max_seconds}: expected a number of seconds above 0")
        self.max_seconds = max_seconds
        self.deadline = math.inf if max_seconds is None else monotonic() + max_seconds
        self.should_stop = should_stop.is_set if isinstance(should_stop, threading.Event) else should_stop
        self.cancelled = self.timed_out = False

    def is_met(self) -> bool:
        """Return whether the call has to end; once it has to, this stays so."""
        if self.should_stop is not None and not self.cancelled:
            self.cancelled = self.should_stop()
        if self.max_seconds is not None and not self.timed_out:
            self.timed_out = monotonic() >= self.deadline
        return self.cancelled or self.timed_out

    def check(self, steps: int, max_steps: int) -> None:
        """Raise DecodingTimeoutError or DecodingCancelledError if the call has to end; `steps` are done."""
        if not self.is_met():
            return
        progress = f"after {steps:,} of at most {max_steps:,} steps"
        if self.cancelled:
            raise DecodingCancelledError(f"decoding was cancelled {progress}")
        raise DecodingTimeoutError(f"decoding took longer than {self.max_seconds:g} s and was stopped {progress}")

    listens = False  # whether `report` is to be called

    def report(self, certain: Callable[[], Sequence[int]]) -> None:
        """Be told after a step; `certain` returns the first tokens of a batch's first output, as far as they are final.

        In beam search they are those that all hypotheses share.
        """


NEVER = StopCondition()

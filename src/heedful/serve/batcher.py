"""The micro-batcher: inputs of several requests are computed as one batch, in a bounded number of threads.

Inputs for the same model with the same options wait a few milliseconds for others, and those of similar length share a
batch. Nothing waits where nobody else is there. The queue is bounded: what does not fit is refused at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

from heedful.decoding import StopCondition
from heedful.errors import DecodingCancelledError
from heedful.parallel import limit_torch_threads
from heedful.serve.problems import busy
from heedful.serve.statistics import Statistics

Work = Callable[[Sequence[Any], StopCondition], Sequence[Any]]
Result = TypeVar("Result")
SMOOTHING = 0.1  # of the seconds per input, from which `Retry-After` is estimated
MAX_RETRY_AFTER = 30.0


@dataclass(eq=False, slots=True)
class Entry:
    """An input that waits or is computed."""

    key: Hashable
    payload: Any
    length: int
    future: asyncio.Future[Any]
    since: float
    cancelled: threading.Event = field(default_factory=threading.Event)


@dataclass(eq=False, slots=True)
class Group:
    """Inputs that may share a batch, the oldest first."""

    work: Work
    most: int  # inputs per batch
    entries: list[Entry] = field(default_factory=list)


class Batcher:
    """Runs inputs in batches; its methods are called in the event loop, the work runs in threads."""

    def __init__(self, threads: int, wait: float, batch: int, queue: int, statistics: Statistics) -> None:
        self.threads, self.wait, self.batch, self.queue, self.statistics = threads, wait, batch, queue, statistics
        self.pool = ThreadPoolExecutor(threads, "heedful-serve", limit_torch_threads, (1,))
        self.groups: dict[Hashable, Group] = {}
        self.waiting = self.running = 0
        self.draining = False
        self._last_size = 1
        self._seconds_per_input = 0.01
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, work: Work, inputs: Sequence[tuple[Hashable, Any, int]], joins: bool = True) -> list[Any]:
        """Return the results of several inputs, in order; raise a ProblemError at once if there is no place for them.

        An input is a key, a payload and its length. Inputs with the same key may share a batch, and have the same
        `work`. A caller that is cancelled frees the places of its inputs.
        """
        self.admit(len(inputs))
        loop, now, own = asyncio.get_running_loop(), monotonic(), object()
        entries = [
            Entry(key if joins else own, payload, length, loop.create_future(), now) for key, payload, length in inputs
        ]
        for entry in entries:
            self.groups.setdefault(entry.key, Group(work, self.batch if joins else 1)).entries.append(entry)
        self._count(len(entries))
        self._schedule()
        try:
            return list(await asyncio.gather(*(entry.future for entry in entries)))
        finally:
            self._leave(entries)

    async def call(self, function: Callable[[StopCondition], Result]) -> Result:
        """Return what one function computes in a thread; it takes a place in the queue, too."""
        (result,) = await self.run(lambda _, stop: [function(stop)], [(None, None, 0)], joins=False)
        return result  # type: ignore[no-any-return]

    def admit(self, count: int) -> None:
        """Raise a ProblemError if the queue has no place for so many inputs, or the server is about to end."""
        if self.draining:
            raise busy("the server is shutting down", 5)
        if self.waiting and self.waiting + count > self.queue:
            seconds = min(MAX_RETRY_AFTER, (self.waiting + count) * self._seconds_per_input / self.threads)
            raise busy(f"the server is busy: {self.waiting:,} inputs are waiting; try again later", seconds)

    def close(self) -> None:
        """End the threads; what still runs in them is told to stop."""
        for group in self.groups.values():
            for entry in group.entries:
                entry.cancelled.set()
        self.pool.shutdown(wait=False, cancel_futures=True)

    def _schedule(self) -> None:
        """Start the batches for which there are threads, and come back when the next one is due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self.running < self.threads and self.groups:
            key, group = min(self.groups.items(), key=lambda pair: pair[1].entries[0].since)
            due = group.entries[0].since + self.wait
            is_alone = self.running == 0 and self._last_size <= 1  # nobody is there to wait for
            if group.most > 1 and len(group.entries) < group.most and not is_alone and monotonic() < due:
                key, group = self._full_group(key)
                if len(group.entries) < group.most:
                    self._timer = asyncio.get_running_loop().call_at(
                        asyncio.get_running_loop().time() + max(0.0, due - monotonic()), self._schedule
                    )
                    return
            self._start(key, group)

    def _full_group(self, default: Hashable) -> tuple[Hashable, Group]:
        """Return a group that has enough inputs for a batch, else the default one."""
        for key, group in self.groups.items():
            if len(group.entries) >= group.most:
                return key, group
        return default, self.groups[default]

    def _start(self, key: Hashable, group: Group) -> None:
        entries = choose_batch(group.entries, group.most)
        group.entries = [entry for entry in group.entries if entry not in entries]
        if not group.entries:
            del self.groups[key]
        self._count(-len(entries))
        self.running += 1
        self._last_size = len(entries)
        self.statistics.batch(len(entries), sum(entry.length for entry in entries))
        loop = asyncio.get_running_loop()
        task = loop.run_in_executor(self.pool, _compute, group.work, entries)
        begin = monotonic()
        task.add_done_callback(lambda done: self._finish(entries, begin, done))

    def _finish(self, entries: list[Entry], begin: float, done: asyncio.Future[list[Any]]) -> None:
        self.running -= 1
        seconds = (monotonic() - begin) / len(entries)
        self._seconds_per_input += SMOOTHING * (seconds - self._seconds_per_input)
        results = [DecodingCancelledError("the server ended")] * len(entries) if done.cancelled() else done.result()
        for entry, result in zip(entries, results, strict=True):
            if entry.future.done():
                continue
            if isinstance(result, BaseException):
                entry.future.set_exception(result)
            else:
                entry.future.set_result(result)
        self._schedule()

    def _leave(self, entries: Sequence[Entry]) -> None:
        """Free the places of a request that has its results, or whose client has left."""
        for entry in entries:
            entry.cancelled.set()
            if not entry.future.done():
                entry.future.cancel()
            elif not entry.future.cancelled():
                entry.future.exception()  # one of several errors is raised; the others are read here
        for key in {entry.key for entry in entries}:
            if (group := self.groups.get(key)) is None:
                continue
            left = [entry for entry in group.entries if entry not in entries]
            self._count(len(left) - len(group.entries))
            group.entries = left
            if not left:
                del self.groups[key]

    def _count(self, change: int) -> None:
        self.waiting += change
        self.statistics.queue(self.waiting)


def choose_batch(entries: Sequence[Entry], most: int) -> list[Entry]:
    """Return the oldest input and those of the most similar length, at most `most`."""
    if len(entries) <= most:
        return list(entries)
    oldest = entries[0]
    rest = sorted(entries[1:], key=lambda entry: abs(entry.length - oldest.length))
    return [oldest, *rest[: most - 1]]


def _compute(work: Work, entries: Sequence[Entry]) -> list[Any]:
    """Return the result of every input, or the error of one; runs in a thread.

    The batch stops when all of its clients have left. If it fails, its inputs are computed one by one, so that an input
    fails by itself only.
    """
    live = [entry for entry in entries if not entry.cancelled.is_set()]
    stop = StopCondition(should_stop=lambda: all(entry.cancelled.is_set() for entry in live))
    try:
        by_entry = dict(zip(map(id, live), work([entry.payload for entry in live], stop) if live else (), strict=True))
    except Exception as error:
        if len(live) > 1 and not isinstance(error, DecodingCancelledError):
            return [_compute(work, [entry])[0] for entry in entries]
        by_entry = {id(entry): error for entry in live}
    return [by_entry.get(id(entry)) for entry in entries]

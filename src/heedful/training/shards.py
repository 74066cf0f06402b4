"""A batch in parts, each computed by a thread of its own.

Threads that share every product wait for one another at each of a step's many small ones; threads that have
sentences of their own meet once a step. There are two: then it does not matter whose gradients come first,
and the same parts give the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Generic, Protocol, runtime_checkable

import torch

from heedful import native
from heedful.config import TrainingConfig
from heedful.training.devices import by_halves
from heedful.training.halves import Halves
from heedful.training.seeds import number_for
from heedful.training.types import Batch, Loss, Model, Trainable

PARTS = 2


@runtime_checkable
class Divisible(Protocol[Batch]):
    """A task whose batches can be computed in parts: their losses add up, and all chance is dropout's."""

    def parts(self, batch: Batch, count: int) -> Sequence[Batch]:
        """At most `count` parts; one where it cannot be divided."""


class Shards(Generic[Model, Batch]):
    """Threads that each lead a part of a batch forth and back."""

    def __init__(
        self, task: Trainable[Model, Batch], model: Model, threads: int, halves: Halves | None = None
    ) -> None:
        self.task, self.model, self.threads, self.halves = task, model, threads, halves
        self.inner = max(1, threads // PARTS)
        self.pool = ThreadPoolExecutor(PARTS)
        self.weights = [weight for weight in model.parameters() if weight.requires_grad]

    def divide(self, batch: Batch) -> Sequence[Batch]:
        return self.task.parts(batch, PARTS) if isinstance(self.task, Divisible) else [batch]

    def backward(self, parts: Sequence[Batch], scale: float, *what: object) -> Loss:
        """Add the parts' gradients to the weights'. `what` names the batch, for its random numbers."""
        before = [weight.grad for weight in self.weights]  # of batches that belong to the same update
        for weight in self.weights:
            weight.grad = None
        jobs = [self.pool.submit(self._one, part, scale, (*what, at)) for at, part in enumerate(parts)]
        try:
            losses = [job.result() for job in jobs]
        finally:
            torch.set_num_threads(self.threads)  # MKL has one number for all threads
        for weight, old in zip(self.weights, before, strict=True):
            if old is not None:
                weight.grad = old if weight.grad is None else weight.grad.add_(old)
        return Loss(torch.stack([loss.total for loss in losses]).sum(), sum(loss.tokens for loss in losses))

    def _one(self, part: Batch, scale: float, what: tuple[object, ...]) -> Loss:
        torch.set_num_threads(self.inner)
        with self.halves or nullcontext():
            with native.drawing(number_for(*what)):
                loss = self.task.loss(self.model, part)
            torch.autograd.backward(loss.total * scale)
        return Loss(loss.total.detach(), loss.tokens)


@contextmanager
def shards_for(
    task: Trainable[Model, Batch],
    model: Model,
    config: TrainingConfig,
    world: int,
    halves: Halves | None = None,
) -> Iterator[Shards[Model, Batch] | None]:
    """Shards where they can be: one process, the CPU, tensors of float32, more than one thread."""
    threads = torch.get_num_threads()
    able = world == 1 and config.device == "cpu" and (config.precision == "32-true" or by_halves(config))
    if not able or threads == 1 or native.library() is None:
        yield None
        return
    shards = Shards(task, model, threads, halves)
    try:
        yield shards
    finally:
        shards.pool.shutdown()

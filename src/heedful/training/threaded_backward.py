"""Forward and backward passes of one batch split over two threads.

Threads that share every matrix product have to synchronize at each of them; threads that have their own rows of the
batch synchronize once per step. With exactly two parts the sum of the gradients does not depend on which thread
finishes first, so results are reproducible bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Generic, Protocol, runtime_checkable

import torch

from heedful import kernels
from heedful.config import TrainingConfig
from heedful.parallel import limit_torch_threads
from heedful.training.bf16 import Bf16Products
from heedful.training.devices import wants_bf16_products
from heedful.training.seeds import derive_seed
from heedful.training.types import Batch, Loss, Model, Trainable

N_PARTS = 2


@runtime_checkable
class SplittableTask(Protocol[Batch]):
    """A task whose batches can be split: the parts' losses add up, and dropout is the only randomness."""

    def split_batch(self, batch: Batch, n_parts: int) -> Sequence[Batch]:
        """Return at most `n_parts` parts; one part if the batch cannot be split."""


class ThreadedBackward(Generic[Model, Batch]):
    """Threads that each run the forward and backward pass of one part of a batch."""

    def __init__(
        self, task: Trainable[Model, Batch], model: Model, threads: int, bf16: Bf16Products | None = None
    ) -> None:
        self.task, self.model, self.bf16 = task, model, bf16
        threads_per_part = max(1, threads // N_PARTS)
        self.pool = ThreadPoolExecutor(N_PARTS, initializer=limit_torch_threads, initargs=(threads_per_part,))
        self.weights = [weight for weight in model.parameters() if weight.requires_grad]

    def split(self, batch: Batch) -> Sequence[Batch]:
        """Return the parts of a batch, or only the batch if the task cannot split it."""
        return self.task.split_batch(batch, N_PARTS) if isinstance(self.task, SplittableTask) else [batch]

    def backward(self, parts: Sequence[Batch], scale: float, *seed_key: object) -> Loss:
        """Add the gradients of `scale` times the parts' losses to the weights; return the summed loss.

        `seed_key` identifies the batch; each part draws its dropout masks from a seed derived from it.
        """
        accumulated = [weight.grad for weight in self.weights]  # from earlier batches of the same update
        for weight in self.weights:
            weight.grad = None
        jobs = [self.pool.submit(self._run_part, part, scale, (*seed_key, i)) for i, part in enumerate(parts)]
        losses = [job.result() for job in jobs]
        for weight, earlier in zip(self.weights, accumulated, strict=True):
            if earlier is not None:
                weight.grad = earlier if weight.grad is None else weight.grad.add_(earlier)
        return Loss(torch.stack([loss.total for loss in losses]).sum(), sum(loss.tokens for loss in losses))

    def _run_part(self, part: Batch, scale: float, seed_key: tuple[object, ...]) -> Loss:
        with self.bf16 or nullcontext():
            with kernels.seeded_dropout(derive_seed(*seed_key)):
                loss = self.task.loss(self.model, part)
            torch.autograd.backward(loss.total * scale)
        return Loss(loss.total.detach(), loss.tokens)


@contextmanager
def threaded_backward_if_possible(
    task: Trainable[Model, Batch],
    model: Model,
    config: TrainingConfig,
    world_size: int,
    bf16: Bf16Products | None = None,
) -> Iterator[ThreadedBackward[Model, Batch] | None]:
    """Yield a ThreadedBackward for one process with several CPU threads in float32; otherwise yield None."""
    threads = torch.get_num_threads()
    float32 = config.precision == "32-true" or wants_bf16_products(config)
    possible = world_size == 1 and config.device == "cpu" and float32
    if not possible or threads == 1 or kernels.library() is None:
        yield None
        return
    threaded = ThreadedBackward(task, model, threads, bf16)
    try:
        yield threaded
    finally:
        threaded.pool.shutdown()

"""What the loop and a task say to one another; without Fabric, so that using a model stays quick."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from heedful.errors import TrainingError


class Movable(Protocol):
    """What a batch must be able to do."""

    def to(self, device: torch.device) -> Self: ...


Model = TypeVar("Model", bound=nn.Module, contravariant=True)
Batch = TypeVar("Batch", bound=Movable)


class Loss(NamedTuple):
    """A sum and what it is a sum over, so that batches of any size are weighed alike."""

    total: Tensor
    tokens: int


class Sample(NamedTuple):
    """One validation item: what was read, what was wanted, what was written."""

    source: str
    reference: str
    output: str


class Validation(NamedTuple):
    """What a task measured, a few samples, and what it finds odd, in whole sentences."""

    figures: Mapping[str, float]
    samples: Sequence[Sample] = ()
    warnings: Sequence[str] = ()


class Report(NamedTuple):
    """What is known after a validation."""

    epoch: int
    step: int
    seconds: float
    train_loss: float
    figures: Mapping[str, float]
    rate: float = 0.0
    improved: bool = False
    samples: Sequence[Sample] = ()
    warnings: Sequence[str] = ()

    def plain(self) -> dict[str, Any]:
        """Dicts, lists, numbers and words only: for JSON and for checkpoints."""
        return {
            **self._asdict(),
            "figures": dict(self.figures),
            "samples": [sample._asdict() for sample in self.samples],
            "warnings": list(self.warnings),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Report:
        samples = tuple(Sample(**sample) for sample in plain.get("samples", ()))
        known = {name: plain[name] for name in cls._fields if name in plain}
        return cls(**{**known, "samples": samples, "warnings": tuple(plain.get("warnings", ()))})


def silent(*_: object) -> None:
    """For callers that want no news."""


Begin = Callable[[int, int], None]  # steps planned, steps done before
Tick = Callable[[int, float], None]  # steps done, loss per token
After = Callable[[Report], None]
Say = Callable[[str], None]
Busy = Callable[
    [str, int], AbstractContextManager[Callable[[int], None]]
]  # what, how many; hears how many more


def quietly(_what: str, _total: int) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(silent)


class Ears(NamedTuple):
    """Who listens; in other processes than the first, nobody."""

    begin: Begin = silent
    tick: Tick = silent
    after: After = silent
    say: Say = silent
    busy: Busy = quietly


class Outcome(NamedTuple):
    """How a training ended: every report, the one of the weights that the model now holds, and why."""

    reports: Sequence[Report]
    best: Report
    reason: str


class TrainingStopped(TrainingError):  # noqa: N818 - somebody's wish, not a fault
    """Somebody stopped it (Ctrl-C, SIGTERM); the state is written, the same call goes on from there."""


class Trainable(Protocol[Model, Batch]):
    """What the loop asks of a task.

    `batches` gives the epoch's batches from number `start` on, and of those every `world`-th from number
    `rank` on: numbers count the whole epoch, not one process's share. Their order follows from seed and
    epoch alone. `steps_per_epoch` is how many of them the process with the most gets. Whatever `loss`
    draws at random it draws from the global generators: the loop seeds them for each batch.
    """

    def batches(self, epoch: int, start: int = 0, rank: int = 0, world: int = 1) -> Iterator[Batch]: ...
    def steps_per_epoch(self, world: int = 1) -> int: ...
    def loss(self, model: Model, batch: Batch) -> Loss: ...
    def validate(self, model: Model) -> Validation: ...


def duration(seconds: float) -> str:
    """
    >>> duration(40), duration(100), duration(9000)
    ('40 s', '1.7 min', '2.5 h')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    if minutes < 60:
        return f"{minutes:.1f} min" if minutes < 10 else f"{minutes:.0f} min"
    return f"{minutes / 60:.1f} h"


def leads() -> bool:
    """True in the one process that talks and writes (`torchrun` numbers them)."""
    return int(os.environ.get("RANK", "0")) == 0

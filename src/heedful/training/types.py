"""The interface between the training loop and a task; imports no Fabric, so that loading a model stays fast."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn


class Movable(Protocol):
    """A batch: anything that can be moved to a device."""

    def to(self, device: torch.device) -> Self: ...


Model = TypeVar("Model", bound=nn.Module, contravariant=True)
Batch = TypeVar("Batch", bound=Movable)


class Loss(NamedTuple):
    """A loss summed over tokens, and their number; the mean over several batches weights every token equally."""

    total: Tensor
    tokens: int


class Sample(NamedTuple):
    """One validation item with the model's output."""

    source: str
    reference: str
    output: str


class Validation(NamedTuple):
    """The result of a validation: metrics by name, some samples, and warnings as sentences."""

    metrics: Mapping[str, float]
    samples: Sequence[Sample] = ()
    warnings: Sequence[str] = ()


class Report(NamedTuple):
    """One validation of a run: a line of `metrics.jsonl`."""

    epoch: int
    step: int
    seconds: float
    train_loss: float
    metrics: Mapping[str, float]
    learning_rate: float = 0.0
    improved: bool = False
    samples: Sequence[Sample] = ()
    warnings: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return dicts, lists, numbers and strings only, for JSON and checkpoints."""
        return {
            **self._asdict(),
            "metrics": dict(self.metrics),
            "samples": [sample._asdict() for sample in self.samples],
            "warnings": list(self.warnings),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Report:
        """Return the Report of a `to_dict`; unknown keys are ignored."""
        known = {name: fields[name] for name in cls._fields if name in fields}
        samples = tuple(Sample(**sample) for sample in fields.get("samples", ()))
        return cls(**{**known, "samples": samples, "warnings": tuple(fields.get("warnings", ()))})


def noop(*_: object) -> None:
    """Do nothing."""


LogLine = Callable[[str], None]
Advance = Callable[[int], None]  # receives the number of items done since the last call


def noop_progress(_description: str, _total: int) -> AbstractContextManager[Advance]:
    """Show no progress."""
    return nullcontext(noop)


class Callbacks(NamedTuple):
    """Progress callbacks; no-ops on ranks other than 0."""

    on_start: Callable[[int, int], None] = noop  # planned steps, steps already done
    on_step: Callable[[int, float], None] = noop  # steps done, training loss per token
    on_validation: Callable[[Report], None] = noop
    log: LogLine = noop  # one line of text
    on_busy: Callable[[str, int], AbstractContextManager[Advance]] = noop_progress  # description, total
    on_built: Callable[[Any, Any, Any], None] = noop  # recipe, assets and model, before the first step


NO_CALLBACKS = Callbacks()


class TrainingResult(NamedTuple):
    """All reports of a run, the report of the final weights, and the setting that ended it."""

    reports: Sequence[Report]
    best: Report
    reason: str


class Trainable(Protocol[Model, Batch]):
    """The interface of a task to the training loop.

    `batches` yields the batches of an epoch from number `start` on, and of those every `world_size`-th from
    number `rank` on: numbers count the batches of all processes. Their order depends on seed and epoch only.
    `steps_per_epoch` is the number of batches of the process that gets the most. `loss` draws random numbers
    from the global generators only, which the loop seeds before each batch.
    """

    def batches(self, epoch: int, start: int = 0, rank: int = 0, world_size: int = 1) -> Iterator[Batch]: ...
    def steps_per_epoch(self, world_size: int = 1) -> int: ...
    def loss(self, model: Model, batch: Batch) -> Loss: ...
    def validate(self, model: Model) -> Validation: ...


def format_duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours.

    >>> format_duration(40), format_duration(100), format_duration(9000)
    ('40 s', '1.7 min', '2.5 h')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    if minutes < 60:
        return f"{minutes:.1f} min" if minutes < 10 else f"{minutes:.0f} min"
    return f"{minutes / 60:.1f} h"


def is_main_process() -> bool:
    """Return True on rank 0, the process that logs and writes files (`torchrun` sets RANK)."""
    return int(os.environ.get("RANK", "0")) == 0

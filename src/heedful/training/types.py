"""What the loop and a task say to one another; without Fabric, so that using a model stays quick."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol, TypeVar

from torch import Tensor, nn

from heedful.data.batch import TextBatch

Model = TypeVar("Model", bound=nn.Module, contravariant=True)


class Loss(NamedTuple):
    """A sum and what it is a sum over, so that batches of any size are weighed alike."""

    total: Tensor
    tokens: int


class Report(NamedTuple):
    """What is known after an epoch."""

    epoch: int
    step: int
    seconds: float
    train_loss: float
    figures: Mapping[str, float]


class Trainable(Protocol[Model]):
    """What the loop asks of a task."""

    def batches(self, epoch: int) -> Iterator[TextBatch]: ...
    def steps_per_epoch(self) -> int: ...
    def loss(self, model: Model, batch: TextBatch) -> Loss: ...
    def validate(self, model: Model) -> Mapping[str, float]: ...

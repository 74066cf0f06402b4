"""Averaged weights: an exponential moving average, or the mean of several snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

Weights = Mapping[str, Tensor]


def copy_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return a detached copy of the model's state dict."""
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def average_weights(snapshots: Sequence[Weights]) -> dict[str, Tensor]:
    """Return the mean of each floating-point tensor; integer tensors (counters) come from the last snapshot.

    >>> average_weights([{"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([3.0, 6.0])}])["w"]
    tensor([2., 4.])
    """
    mean: dict[str, Tensor] = {}
    for name, last in snapshots[-1].items():
        if last.is_floating_point():
            mean[name] = torch.stack([snapshot[name] for snapshot in snapshots]).mean(dim=0)
        else:
            mean[name] = last.clone()
    return mean


class MovingAverage:
    """An exponential moving average (EMA) of a model's weights.

    The decay is at most (1 + step) / (10 + step), so that the random initial weights are forgotten quickly.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = copy_weights(model)

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """Move the average towards the model's current weights."""
        decay = min(self.decay, (1 + step) / (10 + step))
        for name, current in model.state_dict().items():
            if current.is_floating_point():
                self.weights[name].lerp_(current, 1 - decay)
            else:
                self.weights[name].copy_(current)


@contextmanager
def use_weights(model: nn.Module, weights: Weights | None) -> Iterator[None]:
    """Load `weights` into the model for the duration of the block; None changes nothing."""
    if weights is None:
        yield
        return
    original = copy_weights(model)
    model.load_state_dict(weights)
    try:
        yield
    finally:
        model.load_state_dict(original)

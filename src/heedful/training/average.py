"""Weights better than the last ones: a moving average, or the mean of some snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

Weights = Mapping[str, Tensor]


def snapshot(model: nn.Module) -> dict[str, Tensor]:
    """A copy of all weights, by name."""
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def mean_of(shots: Sequence[Weights]) -> dict[str, Tensor]:
    """The mean of each weight; what is not a real number (a counter) is taken from the last.

    >>> mean_of([{"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([3.0, 6.0])}])["w"]
    tensor([2., 4.])
    """
    mean: dict[str, Tensor] = {}
    for name, last in shots[-1].items():
        if last.is_floating_point():
            mean[name] = torch.stack([shot[name] for shot in shots]).mean(dim=0)
        else:
            mean[name] = last.clone()
    return mean


class MovingAverage:
    """EMA: each step moves it by 1 - decay towards the weights.

    Early on it moves faster, as if the decay were (1 + step) / (10 + step): the first weights are noise.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = snapshot(model)

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        stay = min(self.decay, (1 + step) / (10 + step))
        for name, now in model.state_dict().items():
            if now.is_floating_point():
                self.weights[name].lerp_(now, 1 - stay)
            else:
                self.weights[name].copy_(now)


@contextmanager
def holding(model: nn.Module, weights: Weights | None) -> Iterator[None]:
    """The model with other weights for a while; with None, with its own."""
    if weights is None:
        yield
        return
    own = snapshot(model)
    model.load_state_dict(weights)
    try:
        yield
    finally:
        model.load_state_dict(own)

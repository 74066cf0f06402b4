"""Distances between two distributions along the last axis, with natural logarithms."""

from __future__ import annotations

import torch
from torch import Tensor


def tvd(p: Tensor, q: Tensor) -> Tensor:
    """Return the total variation distance, 0 to 1.

    >>> round(float(tvd(torch.tensor([0.7, 0.2, 0.1]), torch.tensor([0.1, 0.2, 0.7]))), 6)
    0.6
    """
    return (p - q).abs().sum(dim=-1) / 2


def kl(p: Tensor, q: Tensor) -> Tensor:
    """Return the Kullback-Leibler divergence `sum p ln(p / q)`; terms with p = 0 are 0."""
    smallest = torch.finfo(p.dtype).tiny
    return (p * (p.clamp_min(smallest).log() - q.clamp_min(smallest).log())).sum(dim=-1)


def jsd(p: Tensor, q: Tensor) -> Tensor:
    """Return the Jensen-Shannon divergence, 0 to ln 2.

    >>> p, q = torch.tensor([0.7, 0.2, 0.1]).double(), torch.tensor([0.1, 0.2, 0.7]).double()
    >>> round(float(jsd(p, q)), 6)
    0.253102
    """
    middle = (p + q) / 2
    return (kl(p, middle) + kl(q, middle)) / 2

"""Where every random number of a training comes from."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import torch


def number_for(*what: object) -> int:
    """A number that follows from what it is for."""
    return int.from_bytes(hashlib.sha256(" ".join(map(str, what)).encode()).digest()[:7], "big")


def seed_for(*what: object) -> None:
    """Seed Python's, numpy's and torch's global generators by what the numbers are for.

    The loop calls it with (seed, epoch, number of the batch) before each batch. So dropout and sampling
    need no saved state: a resumed run, one with other validations in between, and two processes that
    share the batches draw the very numbers of an uninterrupted single one.

    >>> seed_for(1, "epoch", 2, "batch", 3); first = torch.rand(1)
    >>> seed_for(1, "epoch", 2, "batch", 4); other = torch.rand(1)
    >>> seed_for(1, "epoch", 2, "batch", 3); bool(torch.rand(1) == first != other)
    True
    """
    number = number_for(*what)
    random.seed(number)
    np.random.seed(number % 2**32)  # noqa: NPY002 - libraries inside a task may draw from it
    if torch.accelerator.is_available():
        torch.manual_seed(number)
    else:  # the same for the CPU, and fifty times as quick: it need not ask after every kind of device
        torch.default_generator.manual_seed(number)

"""Seeds of all random numbers drawn during training."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import torch


def derive_seed(*key: object) -> int:
    """Return a 56-bit seed derived from a key that identifies the use of the random numbers."""
    return int.from_bytes(hashlib.sha256(" ".join(map(str, key)).encode()).digest()[:7], "big")


def seed_everything(*key: object) -> None:
    """Seed the global generators of Python, numpy and torch by `derive_seed(*key)`.

    The loop calls this with (seed, epoch, batch number) before each batch, so dropout and sampling need no saved
    generator state: a resumed run, a run with more validations, and two processes that share the batches draw
    the same numbers as one uninterrupted process.

    >>> seed_everything(1, "epoch", 2, "batch", 3); first = torch.rand(1)
    >>> seed_everything(1, "epoch", 2, "batch", 4); other = torch.rand(1)
    >>> seed_everything(1, "epoch", 2, "batch", 3); bool(torch.rand(1) == first != other)
    True
    """
    seed = derive_seed(*key)
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - libraries used by a task may draw from the global generator
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:  # the same for the CPU, and 50 times faster: it does not query every device type
        torch.default_generator.manual_seed(seed)

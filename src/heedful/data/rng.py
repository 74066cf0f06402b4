"""Random generators seeded by a key that identifies their use, so that resuming needs no stored state."""

from __future__ import annotations

import hashlib

import numpy as np


def seeded_rng(*key: object) -> np.random.Generator:
    """Return a generator that is the same for the same key in every process and on every machine."""
    digest = hashlib.sha256(" ".join(map(str, key)).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))

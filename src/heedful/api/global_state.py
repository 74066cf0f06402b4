"""Global state of the process that belongs to the user: what a call changes is as it was when the call returns."""

from __future__ import annotations

import logging
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import numpy as np
import torch

_lock = RLock()  # building a model draws from torch's global generator, which all threads share


@contextmanager
def preserved_state() -> Iterator[None]:
    """Restore random generators, torch's threads, warning filters and logging levels; one thread at a time."""
    with _lock, warnings.catch_warnings():
        numpy_state, python_state, torch_state = np.random.get_state(), random.getstate(), torch.get_rng_state()  # noqa: NPY002
        threads = torch.get_num_threads()
        levels = {name: logging.getLogger(name).level for name in (None, *logging.root.manager.loggerDict)}
        try:
            yield
        finally:
            np.random.set_state(numpy_state)  # noqa: NPY002
            random.setstate(python_state)
            torch.set_rng_state(torch_state)
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)
            for name in (None, *logging.root.manager.loggerDict):
                logger = logging.getLogger(name)
                if logger.level != levels.get(name, logging.NOTSET):
                    logger.setLevel(levels.get(name, logging.NOTSET))

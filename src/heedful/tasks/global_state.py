"""Global state of the process that belongs to the user: what a call changes is as it was when the call returns."""

from __future__ import annotations

import logging
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

import numpy as np
import torch

_lock = Lock()
_restore: Callable[[], None] | None = None
_calls = 0


@contextmanager
def preserved_state() -> Iterator[None]:
    """Restore random generators, torch's threads, warning filters and logging levels.

    Of several calls in different threads, the last one that ends restores what the first one found.
    """
    global _calls, _restore
    with _lock:
        _calls += 1
        if _calls == 1:
            _restore = _remember()
    try:
        yield
    finally:
        with _lock:
            _calls -= 1
            if _calls == 0 and _restore is not None:
                _restore()
                _restore = None


def _remember() -> Callable[[], None]:
    """Return a function that restores the state of now."""
    numpy_state, python_state, torch_state = np.random.get_state(), random.getstate(), torch.get_rng_state()  # noqa: NPY002
    threads, filters = torch.get_num_threads(), list(warnings.filters)
    names = (
        None,
        "sacrebleu",
        *logging.root.manager.loggerDict,
    )  # training quiets sacrebleu before its import
    levels = {name: logging.getLogger(name).level for name in names}

    def restore() -> None:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)
        torch.set_rng_state(torch_state)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        if list(warnings.filters) != filters:
            warnings.filters[:] = filters  # type: ignore[index]
        for name, level in levels.items():
            if logging.getLogger(name).level != level:
                logging.getLogger(name).setLevel(level)

    return restore

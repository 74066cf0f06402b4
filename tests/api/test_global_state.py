"""No call leaves the state of the process changed: random generators, threads, warnings, logging, matplotlib."""

from __future__ import annotations

import logging
import os
import random
import signal
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

import heedful
import small_models
from heedful.viz.figure import draw

pytestmark = pytest.mark.usefixtures("as_users_run")  # the checker of shapes draws random numbers
FORK_GUARD = "TOKENIZERS_PARALLELISM"  # stays, or a process that forks later would wait for threads forever
PAIRS = [(f"{a} {b}", f"{b} {a}") for a in "abcdefghij" for b in "abcdefghij"]
LINE = "the red cat sees a small dog"


def process_state() -> dict[str, Any]:
    """Return the state that belongs to the user of a library."""
    return {
        "torch seed": torch.get_rng_state().tolist(),
        "numpy seed": np.random.get_state()[1].tolist(),  # type: ignore[index]  # noqa: NPY002
        "python seed": random.getstate(),
        "torch threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "torch settings": (
            torch.get_default_dtype(),
            torch.is_grad_enabled(),
            torch.are_deterministic_algorithms_enabled(),
            torch.get_float32_matmul_precision(),
        ),
        "warnings": (list(warnings.filters), warnings.showwarning),
        "logging": {
            name: (logger.level, list(logger.handlers), logger.disabled)
            for name, logger in [("", logging.root), *logging.root.manager.loggerDict.items()]
            if isinstance(logger, logging.Logger) and (logger.level or logger.handlers)
        },
        "matplotlib": dict(matplotlib.rcParams),
        "environment": {name: value for name, value in os.environ.items() if name != FORK_GUARD},
        "folder": Path.cwd(),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "streams": (sys.stdout, sys.stderr, sys.excepthook),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("m")
    small_models.random_model_folder(path, small_models.small_preset("cgru"))
    return path


CALLS: dict[str, Callable[[heedful.Model, Path], object]] = {
    "load": lambda model, _: heedful.load(model.loaded.path),
    "call": lambda model, _: model([LINE] * 200, max_length=6, method="sample"),
    "trace": lambda model, _: model.trace(LINE, max_length=6, what_if=True),
    "plot": lambda model, _: model.trace(LINE, max_length=6).plot(ax=Figure().subplots(), title="t", font=9),
    "draw": lambda model, path: draw(model.trace(LINE, max_length=6), path.with_suffix(".png")),
    "train": lambda _, path: heedful.train(PAIRS, out=path, max_steps=2, threads=2, training__seed=3),
    "evaluate": lambda model, _: model.evaluate(PAIRS[:5], max_length=6),
    "measure": lambda model, _: model.measure(PAIRS[:3]),
    "save": lambda model, path: model.save(path),
    "page": lambda model, _: model.trace(LINE, max_length=6)._repr_html_(),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_leaves_the_process_as_it_was(name: str, folder: Path, tmp_path: Path) -> None:
    import_module("heedful.training.loop")  # importing Fabric for the first time changes filters and the environment
    before = process_state()
    CALLS[name](heedful.load(folder), tmp_path / "out")
    after = process_state()
    new = set(after["logging"]) - set(before["logging"]) - {"sacrebleu", "heedful"}
    for name in new:  # of libraries that were imported for the first time
        del after["logging"][name]
    assert [key for key in before if before[key] != after[key]] == []

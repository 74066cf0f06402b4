"""Replay of a trace against its model folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from heedful.data.asset_files import asset_file
from heedful.errors import TraceError
from heedful.tasks.model_card import WEIGHTS, hash_file
from heedful.tasks.model_folder import read_weights
from heedful.tasks.registry import get_task
from heedful.trace.schema import Trace


def replay_trace(trace: Trace, folder: Path) -> Trace:
    """Return the trace with all its checks, those that need the model's parameters included."""
    if trace.model.sha256 not in (None, hash_file(asset_file(folder, WEIGHTS))):
        raise TraceError(f"{folder}: its weights are not those the trace was recorded with")
    parameters = {name: np.asarray(weight) for name, weight in read_weights(folder).items()}
    replay = get_task(trace.model.task).replay_class(trace, parameters)
    return trace.model_copy(update={"checks": replay.checks()})

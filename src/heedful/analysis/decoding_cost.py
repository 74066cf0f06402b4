"""The time of one decoding step of several models, measured alternately on sources of the same size."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from heedful.config import DecodingOptions
from heedful.data.batch import TextBatch
from heedful.decoding import search
from heedful.models import Seq2Seq
from heedful.tasks.model_folder import load_model

N_SOURCES = 32
SOURCE_LENGTH = 20
MAX_STEPS = 20
ROUNDS = 7  # after one to warm up


def seconds_per_decoding_step(folders: Sequence[Path]) -> list[float | None]:
    """Return for each model the median seconds per greedy step over 32 sources; None if it does not generate.

    Sources are random, because the cost does not depend on their content.
    """
    models = [load_model(folder) for folder in folders]
    batches = {
        index: TextBatch(loaded.assets.random_source(N_SOURCES, SOURCE_LENGTH, torch.Generator().manual_seed(1)))
        for index, loaded in enumerate(models)
        if isinstance(loaded.model, Seq2Seq)
    }
    seconds: dict[int, list[float]] = {index: [] for index in batches}
    for round_number in range(1 + ROUNDS):
        for index, batch in batches.items():
            start = time.perf_counter()
            with torch.inference_mode():
                hypotheses = search(models[index].model, batch, DecodingOptions(max_length=MAX_STEPS)).hypotheses
            elapsed = time.perf_counter() - start
            if round_number:
                seconds[index].append(elapsed / max(len(best[0].tokens) for best in hypotheses))
    return [statistics.median(seconds[index]) if index in seconds else None for index in range(len(models))]

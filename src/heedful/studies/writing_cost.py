"""What a step of writing costs: several models in turns, on sources of one size, greedily."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from heedful.data.batch import Padded, Regions, TextBatch, pad
from heedful.decoding import Greedy, search
from heedful.models import Seq2Seq
from heedful.tasks.caption import CaptionWords, regions
from heedful.tasks.folder import open_model

ROWS, WORDS, STEPS, ROUNDS = 32, 20, 20, 7


def step_seconds(folders: Sequence[Path]) -> list[float | None]:
    """Of each model the median over rounds of a step that writes a word of 32 sources at once.

    Sources are drawn, all of the same size: cost does not depend on what they say. None: it writes nothing.
    """
    opened = [open_model(folder) for folder in folders]
    jobs = {
        at: (one.model, TextBatch(_source(one.words)))
        for at, one in enumerate(opened)
        if isinstance(one.model, Seq2Seq)
    }
    found: dict[int, list[float]] = {at: [] for at in jobs}
    for number in range(ROUNDS + 1):
        for at, (model, batch) in jobs.items():
            start = time.perf_counter()
            with torch.inference_mode():
                written = search(model, batch, Greedy(STEPS)).best
            seconds = time.perf_counter() - start
            if number:  # the first is to get warm
                found[at].append(seconds / max(len(best[0].tokens) for best in written))
    return [statistics.median(found[at]) if at in found else None for at in range(len(opened))]


def _source(words: Any) -> Padded | Regions:
    draw = torch.Generator().manual_seed(1)
    if isinstance(words, CaptionWords):
        rows, columns = words.sight.grid
        return regions(torch.randn(ROWS, rows * columns, words.sight.width, generator=draw))
    ids = torch.randint(5, max(6, len(words.source)), (ROWS, WORDS), generator=draw)
    return pad(ids.tolist())

"""Score items for histories in batches, and rank held-out items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import softplus

from heedful.data.histories import Histories, Ints, collate_histories
from heedful.data.ratings import HeldOut
from heedful.metrics.ranking import Ranks, compute_ranks
from heedful.models import ScoringModel
from heedful.parallel import run_in_threads

BATCH_ITEMS = 20_000


class RankingResult(NamedTuple):
    """The ranks of held-out items, and the mean log loss of all scored items."""

    ranks: Ranks
    loss: float


@torch.inference_mode()
def score_items(
    model: ScoringModel, histories: Sequence[Ints], targets: Sequence[Ints], threads: int = 1
) -> npt.NDArray[np.float32]:
    """Return the scores of each history's target items, concatenated."""
    sizes = np.array([len(row) for row in targets])
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    scores = np.empty(bounds[-1], np.float32)
    starts = np.flatnonzero(np.diff(bounds[:-1] // BATCH_ITEMS, prepend=-1)).tolist()
    ends = [*starts[1:], len(sizes)]

    def score_batch(number: int) -> None:
        first, last = starts[number], ends[number]
        batch = collate_histories(histories[first:last], targets[first:last])
        with torch.inference_mode():
            scores[bounds[first] : bounds[last]] = model.logits(batch).float().numpy()

    run_in_threads(score_batch, range(len(starts)), threads)
    return scores


def rank_held_out(
    model: ScoringModel, histories: Histories, held_out: HeldOut, threads: int = 1, all_items: bool = False
) -> RankingResult:
    """Rank each held-out item among its negatives, or among all items that are not in its user's history."""
    user_histories = [histories.items_of(user) for user in held_out.users.tolist()]
    items, negatives = held_out.items.tolist(), held_out.negatives
    if all_items:
        count = 1 + max(int(histories.items.max(initial=0)), *(int(row.max()) for row in held_out.negatives))
        negatives = [_all_negatives(count, history, item) for history, item in zip(user_histories, items, strict=True)]
    targets = [np.append(item, row) for item, row in zip(items, negatives, strict=True)]
    scores = score_items(model, user_histories, targets, threads)
    sizes = np.array([len(row) for row in targets])
    labels = np.zeros(len(scores), np.float32)
    labels[np.cumsum(sizes) - sizes] = 1.0
    logits = torch.from_numpy(scores)
    loss = float((softplus(logits) - torch.from_numpy(labels) * logits).mean())
    return RankingResult(compute_ranks(scores, sizes), loss)


def _all_negatives(count: int, history: Ints, item: int) -> Ints:
    """Return the items that are neither in a history nor held out."""
    is_negative = np.ones(count, bool)
    is_negative[history] = is_negative[item] = False
    return np.flatnonzero(is_negative)

"""Histories, negative sampling and batches of interactions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from heedful.data.histories import Histories, HistoryBatch, InteractionBatches, NegativeSampler
from heedful.data.rng import seeded_rng
from heedful.errors import DataError

ITEMS = 40


def random_histories(n_users: int = 12) -> Histories:
    rng = np.random.default_rng(1)
    rows = [rng.permutation(ITEMS)[: 1 + 2 * user] for user in range(n_users)]
    owners = np.repeat(np.arange(n_users), [len(row) for row in rows])
    return Histories.from_pairs(owners, np.concatenate(rows), n_users)


def epoch(batches: InteractionBatches, number: int) -> list[HistoryBatch]:
    return [batches.batch(number, at, parts) for at, parts in enumerate(batches.plan(number))]


@pytest.mark.parametrize("groups", [0, 3])
def test_every_item_of_every_history_is_a_positive_once(groups: int) -> None:
    histories = random_histories()
    batches = InteractionBatches(histories, ITEMS, 10, 4, seed=1, groups=groups)
    taken: Counter[tuple[frozenset[int], int]] = Counter()
    for batch in epoch(batches, 1):
        assert batch.labels is not None
        assert float(batch.labels.mean()) == pytest.approx(0.2)
        for at in range(batch.entries):
            history, targets = (set(part.tolist()) for part in batch.entry(at))
            entry = batch.slice_entries(at, at + 1)
            assert entry.labels is not None
            positives = entry.targets[entry.labels == 1].tolist()
            taken_items = history | set(positives)
            if groups:
                assert not history & set(positives)  # self-attention over the history never sees a target
            assert not (targets - set(positives)) & taken_items
            taken.update((frozenset(taken_items), item) for item in positives)
    eligible = [user for user in range(len(histories)) if not groups or len(histories.items_of(user)) > 1]
    expected = {
        (frozenset(histories.items_of(u).tolist()), i) for u in eligible for i in histories.items_of(u).tolist()
    }
    assert set(taken) == expected
    assert set(taken.values()) == {1}


def test_batches_have_similar_sizes() -> None:
    batches = InteractionBatches(random_histories(), ITEMS, 10, 4, seed=1)
    sizes = [len(batch.targets) for batch in epoch(batches, 1)]
    assert max(sizes) <= 50
    assert len(sizes) < 25


def test_the_order_follows_from_seed_and_epoch() -> None:
    one, other = (InteractionBatches(random_histories(), ITEMS, 10, 4, seed=1) for _ in range(2))
    first = [batch.targets.tolist() for batch in epoch(one, 1)]
    assert first == [batch.targets.tolist() for batch in epoch(other, 1)]
    assert first != [batch.targets.tolist() for batch in epoch(other, 2)]
    assert first != [b.targets.tolist() for b in epoch(InteractionBatches(random_histories(), ITEMS, 10, 4, seed=2), 1)]


def test_negatives_are_drawn_uniformly_from_untaken_items() -> None:
    histories = Histories.from_pairs(np.array([0, 0, 1]), np.array([0, 2, 3]), 2)
    sampler = NegativeSampler(histories, 4)
    drawn = sampler.draw(np.repeat([0, 1], 3000), seeded_rng("test"))
    counts = [np.bincount(part, minlength=4) for part in (drawn[:3000], drawn[3000:])]
    assert [np.flatnonzero(part).tolist() for part in counts] == [[1, 3], [0, 1, 2]]
    assert counts[0][[1, 3]].min() > 1350
    assert counts[1][:3].min() > 850


def test_a_user_who_took_every_item_is_an_error() -> None:
    with pytest.raises(DataError, match=r"1 user\(s\) have every item in their history"):
        NegativeSampler(Histories.from_pairs(np.array([0, 0]), np.array([0, 1]), 1), 2)


def test_slices_of_a_batch_hold_the_same_entries() -> None:
    batch = epoch(InteractionBatches(random_histories(), ITEMS, 60, 2, seed=1), 1)[0]
    middle = batch.entries // 2
    parts = [batch.slice_entries(0, middle), batch.slice_entries(middle, batch.entries)]
    rejoined = [entry for part in parts for entry in map(part.entry, range(part.entries))]
    for at, (history, targets) in enumerate(rejoined):
        assert history.tolist() == batch.entry(at)[0].tolist()
        assert targets.tolist() == batch.entry(at)[1].tolist()

"""Batches: nothing lost, little padding, an order that follows from seed and epoch."""

from __future__ import annotations

import random

import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.batch import Buckets, Encoded, collate
from heedful.data.tokenizer import END, START

rows = st.lists(st.integers(4, 20), max_size=12).map(lambda ids: [*ids, END])


@given(st.lists(st.builds(Encoded, rows, rows), min_size=1, max_size=40), st.integers(13, 60))
def test_every_example_comes_once_an_epoch_within_the_budget(examples: list[Encoded], budget: int) -> None:
    plan = Buckets(examples, budget, seed=3).plan(epoch=2)
    assert sorted(row for batch in plan for row in batch) == list(range(len(examples)))
    for batch in plan:
        for side in ("source", "target"):
            assert len(batch) * max(len(getattr(examples[row], side)) for row in batch) <= budget


def test_the_order_follows_from_seed_and_epoch() -> None:
    rng = random.Random(1)
    examples = [Encoded([4] * rng.randint(1, 9), [4] * rng.randint(1, 9)) for _ in range(200)]
    plan = Buckets(examples, 60, seed=1).plan
    assert plan(1) == Buckets(examples, 60, seed=1).plan(1)
    assert plan(1) != plan(2)
    assert plan(1) != Buckets(examples, 60, seed=2).plan(1)


def test_padding_is_little_where_lengths_are_many() -> None:
    rng = random.Random(1)
    examples = [
        Encoded([4] * length, [4] * max(1, length + rng.randint(-2, 2)))
        for length in (rng.randint(3, 30) for _ in range(5000))
    ]
    batches = list(Buckets(examples, 2000, seed=1).epoch(1))
    real = sum(int(b.source.keep.sum() + b.target.keep.sum()) for b in batches if b.target)
    total = sum(b.source.keep.numel() + b.target.keep.numel() for b in batches if b.target)
    assert real / total > 0.93


def test_a_batch_keeps_ids_and_masks_together() -> None:
    batch = collate([Encoded([5, 6, END], [7, END]), Encoded([END], [8, 9, END])])
    assert batch.source.ids.tolist() == [[5, 6, END], [END, 0, 0]]
    assert batch.source.keep.tolist() == [[True] * 3, [True, False, False]]
    assert batch.target is not None
    assert batch.target.ids.tolist() == [[START, 7, END, 0], [START, 8, 9, END]]
    assert batch.target.lengths.tolist() == [3, 4]
    moved = batch.to(torch.device("cpu"))
    assert torch.equal(moved.source.ids, batch.source.ids)

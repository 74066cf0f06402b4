"""Batches: nothing lost, little padding, an order that follows from seed and epoch."""

from __future__ import annotations

import itertools
import os
import random
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.config import TokenizerConfig
from heedful.data.batch import Buckets, Encoded, Lengths, collate
from heedful.data.readers import Pairs
from heedful.data.tokenizer import END, START, learn_both

rows = st.lists(st.integers(4, 20), max_size=12).map(lambda ids: [*ids, END])
examples_of = st.lists(st.builds(Encoded, rows, rows), min_size=1, max_size=40)
MULTI30K = Path(os.environ.get("HEEDFUL_DATA", "")) / "multi30k"


def many(count: int = 200, seed: int = 1) -> list[Encoded]:
    rng = random.Random(seed)
    return [Encoded([4] * rng.randint(1, 9), [4] * rng.randint(1, 9)) for _ in range(count)]


class Sizes:
    """A corpus of which nothing but the lengths is known."""

    def __init__(self, source: np.ndarray, target: np.ndarray) -> None:
        self.lengths = Lengths(source.astype(np.int32), target.astype(np.int32))

    def __len__(self) -> int:
        return len(self.lengths.source)

    def __getitem__(self, row: int) -> Encoded:
        raise AssertionError("a plan needs lengths only")


@given(examples_of, st.integers(13, 60), st.integers(1, 9))
def test_every_example_comes_once_an_epoch_within_the_budget(
    examples: list[Encoded], budget: int, sentences: int
) -> None:
    plan = Buckets(examples, budget, seed=3, sentences=sentences).plan(epoch=2)
    assert sorted(row for batch in plan for row in batch) == list(range(len(examples)))
    for batch in plan:
        assert 1 <= len(batch) <= sentences
        for side in ("source", "target"):
            assert len(batch) * max(len(getattr(examples[row], side)) for row in batch) <= budget


def test_an_example_beyond_the_budget_comes_alone() -> None:
    examples = [Encoded([4] * 50, [4]), *many(5)]
    assert [0] in Buckets(examples, 20, seed=1).plan(1)


def test_the_order_follows_from_seed_and_epoch() -> None:
    examples = many()
    plan = Buckets(examples, 60, seed=1).plan
    assert plan(1) == Buckets(examples, 60, seed=1).plan(1)
    assert plan(1) != plan(2)
    assert plan(1) == Buckets(examples, 60, seed=1).plan(1), "asking for another epoch changes nothing"
    assert plan(1) != Buckets(examples, 60, seed=2).plan(1)
    assert plan(1) != Buckets(examples, 60, seed=-1).plan(1)


def test_sentences_meet_others_in_other_epochs() -> None:
    buckets = Buckets(many(400), 60, seed=1)

    def meetings(epoch: int) -> set[tuple[int, int]]:
        return {pair for batch in buckets.plan(epoch) for pair in itertools.combinations(sorted(batch), 2)}

    assert len(meetings(1) & meetings(2)) < 0.5 * len(meetings(1))
    sizes = [[len(batch) for batch in buckets.plan(epoch)] for epoch in (1, 2)]
    assert sizes[0] != sizes[1], "and batches come in another order"


@given(examples_of, st.integers(13, 30), st.integers(0, 12))
def test_an_epoch_can_be_taken_up_at_any_batch(examples: list[Encoded], budget: int, start: int) -> None:
    buckets = Buckets(examples, budget, seed=3)
    whole = [batch.words.ids.tolist() for batch in buckets.epoch(4)]
    rest = [batch.words.ids.tolist() for batch in Buckets(examples, budget, seed=3).epoch(4, start=start)]
    assert rest == whole[start:]
    assert len(whole) == buckets.count(4)


@given(examples_of, st.integers(1, 5))
def test_processes_share_an_epoch_evenly(examples: list[Encoded], world: int) -> None:
    whole = Buckets(examples, 26, seed=3).plan(1)
    parts = [Buckets(examples, 26, seed=3, rank=rank, world=world) for rank in range(world)]
    plans = [part.plan(1) for part in parts]
    assert {len(plan) for plan in plans} == {-(-len(whole) // world)} == {part.count(1) for part in parts}
    together = [batch for round in zip(*plans, strict=True) for batch in round]
    assert together == [whole[number % len(whole)] for number in range(len(together))]


def test_padding_is_counted_as_it_is() -> None:
    buckets = Buckets(many(500), 80, seed=1)
    batches = list(buckets.epoch(3))
    shares = buckets.padding_share(3)
    for side, share in (("source", shares.source), ("target", shares.target)):
        keeps = [getattr(batch, side).keep[:, int(side == "target") :] for batch in batches]
        real, total = sum(int(k.sum()) for k in keeps), sum(k.numel() for k in keeps)
        assert share == pytest.approx(1 - real / total)
    assert min(shares[:2]) < shares.both < max(shares[:2])


def test_padding_is_little_where_lengths_are_many() -> None:
    rng = np.random.default_rng(1)
    source = rng.integers(3, 31, 5000)
    target = np.maximum(1, source + rng.integers(-2, 3, 5000))
    assert max(Buckets(Sizes(source, target), 2000, seed=1).padding_share(1)) < 0.06


def test_a_million_pairs_are_planned_quickly() -> None:
    rng = np.random.default_rng(1)
    source = rng.poisson(12, 1_000_000) + 1
    buckets = Buckets(Sizes(source, source + rng.integers(0, 4, len(source))), 4000, seed=1)
    before = time.process_time()
    plan = buckets.arrange(1)
    assert time.process_time() - before < 3.0  # about 0.3 s on a quiet machine
    assert np.array_equal(np.sort(plan.rows), np.arange(1_000_000))
    assert max(buckets.padding_share(1)) < 0.01


@pytest.mark.skipif(not MULTI30K.is_dir(), reason="needs multi30k under HEEDFUL_DATA")
def test_padding_on_multi30k_is_below_five_percent_on_each_side() -> None:
    pairs = list(Pairs(["train.en.gz", "train.de.gz"], MULTI30K))
    source, target = learn_both(pairs, TokenizerConfig(kind="bpe", size=8_000))
    sources = source.encode_all([pair.source for pair in pairs])
    targets = target.encode_all([pair.target for pair in pairs])
    sizes = Sizes(np.array([*map(len, sources)]), np.array([*map(len, targets)]))
    for budget, sentences, most in ((2_000, None, 0.03), (4_000, None, 0.04), (10**6, 100, 0.03)):
        buckets = Buckets(sizes, budget, seed=1, sentences=sentences)
        for epoch in (1, 2):
            assert max(buckets.padding_share(epoch)) < most


def test_no_examples_make_no_batches() -> None:
    buckets = Buckets([], 10, seed=1)
    assert list(buckets.epoch(1)) == []
    assert buckets.plan(1) == []
    assert buckets.count(1) == 0
    assert buckets.padding_share(1).both == 0.0


def test_a_batch_keeps_ids_and_masks_together() -> None:
    batch = collate([Encoded([5, 6, END], [7, END]), Encoded([END], [8, 9, END])])
    assert batch.words.ids.tolist() == [[5, 6, END], [END, 0, 0]]
    assert batch.source.keep.tolist() == [[True] * 3, [True, False, False]]
    assert batch.target is not None
    assert batch.target.ids.tolist() == [[START, 7, END, 0], [START, 8, 9, END]]
    assert batch.target.lengths.tolist() == [3, 4]
    moved = batch.to(torch.device("cpu"))
    assert torch.equal(moved.words.ids, batch.words.ids)

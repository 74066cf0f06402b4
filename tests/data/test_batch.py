"""Batches: every example once, little padding, an order that follows from seed and epoch."""

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
from heedful.data.batch import BucketBatches, EncodedPair, Lengths, Padded, TextBatch, collate
from heedful.data.pairs import PairFiles
from heedful.data.tokenizer import END, START, train_tokenizers

rows = st.lists(st.integers(4, 20), max_size=12).map(lambda ids: [*ids, END])
examples_of = st.lists(st.builds(EncodedPair, rows, rows), min_size=1, max_size=40)
MULTI30K = Path(os.environ.get("HEEDFUL_DATA", "")) / "multi30k"


def random_examples(count: int = 200, seed: int = 1) -> list[EncodedPair]:
    rng = random.Random(seed)
    return [EncodedPair([4] * rng.randint(1, 9), [4] * rng.randint(1, 9)) for _ in range(count)]


def source_ids(batch: TextBatch) -> list[list[int]]:
    assert isinstance(batch.source, Padded)
    ids: list[list[int]] = batch.source.ids.tolist()
    return ids


class Sizes:
    """A corpus with lengths only."""

    def __init__(self, source: np.ndarray, target: np.ndarray) -> None:
        self.lengths = Lengths(source.astype(np.int32), target.astype(np.int32))

    def __len__(self) -> int:
        return len(self.lengths.source)

    def __getitem__(self, row: int) -> EncodedPair:
        raise AssertionError("a plan needs lengths only")


@given(examples_of, st.integers(13, 60), st.integers(1, 9))
def test_every_example_comes_once_per_epoch_within_batch_tokens(
    examples: list[EncodedPair], batch_tokens: int, max_rows: int
) -> None:
    plan = BucketBatches(examples, batch_tokens, seed=3, max_rows=max_rows).batch_rows(epoch=2)
    assert sorted(row for batch in plan for row in batch) == list(range(len(examples)))
    for batch in plan:
        assert 1 <= len(batch) <= max_rows
        for side in ("source", "target"):
            assert len(batch) * max(len(getattr(examples[row], side)) for row in batch) <= batch_tokens


def test_an_example_longer_than_batch_tokens_is_a_batch_of_its_own() -> None:
    examples = [EncodedPair([4] * 50, [4]), *random_examples(5)]
    assert [0] in BucketBatches(examples, 20, seed=1).batch_rows(1)


def test_the_order_follows_from_seed_and_epoch() -> None:
    examples = random_examples()
    plan = BucketBatches(examples, 60, seed=1).batch_rows
    assert plan(1) == BucketBatches(examples, 60, seed=1).batch_rows(1)
    assert plan(1) != plan(2)
    assert plan(1) == BucketBatches(examples, 60, seed=1).batch_rows(1), "asking for another epoch changes nothing"
    assert plan(1) != BucketBatches(examples, 60, seed=2).batch_rows(1)
    assert plan(1) != BucketBatches(examples, 60, seed=-1).batch_rows(1)


def test_batches_mix_other_examples_in_each_epoch() -> None:
    buckets = BucketBatches(random_examples(400), 60, seed=1)

    def pairs_in_batches(epoch: int) -> set[tuple[int, int]]:
        return {pair for batch in buckets.batch_rows(epoch) for pair in itertools.combinations(sorted(batch), 2)}

    assert len(pairs_in_batches(1) & pairs_in_batches(2)) < 0.5 * len(pairs_in_batches(1))
    sizes = [[len(batch) for batch in buckets.batch_rows(epoch)] for epoch in (1, 2)]
    assert sizes[0] != sizes[1], "batches come in another order"


@given(examples_of, st.integers(13, 30), st.integers(0, 12))
def test_an_epoch_resumes_at_any_batch(examples: list[EncodedPair], batch_tokens: int, start: int) -> None:
    buckets = BucketBatches(examples, batch_tokens, seed=3)
    complete = [source_ids(batch) for batch in buckets.batches(4)]
    rest = [source_ids(batch) for batch in BucketBatches(examples, batch_tokens, seed=3).batches(4, start=start)]
    assert rest == complete[start:]
    assert len(complete) == buckets.n_batches(4)


@given(examples_of, st.integers(1, 5))
def test_processes_share_an_epoch_evenly(examples: list[EncodedPair], world_size: int) -> None:
    all_batches = BucketBatches(examples, 26, seed=3).batch_rows(1)
    parts = [BucketBatches(examples, 26, seed=3, rank=rank, world_size=world_size) for rank in range(world_size)]
    plans = [part.batch_rows(1) for part in parts]
    assert (
        {len(plan) for plan in plans} == {-(-len(all_batches) // world_size)} == {part.n_batches(1) for part in parts}
    )
    together = [batch for round in zip(*plans, strict=True) for batch in round]
    assert together == [all_batches[number % len(all_batches)] for number in range(len(together))]


def test_the_padding_share_is_that_of_the_batches() -> None:
    buckets = BucketBatches(random_examples(500), 80, seed=1)
    batches = list(buckets.batches(3))
    shares = buckets.padding_share(3)
    for side, share in (("source", shares.source), ("target", shares.target)):
        keeps = [getattr(batch, side).keep[:, int(side == "target") :] for batch in batches]
        real, total = sum(int(k.sum()) for k in keeps), sum(k.numel() for k in keeps)
        assert share == pytest.approx(1 - real / total)
    assert min(shares[:2]) < shares.both < max(shares[:2])


def test_padding_is_small_when_lengths_are_diverse() -> None:
    rng = np.random.default_rng(1)
    source = rng.integers(3, 31, 5000)
    target = np.maximum(1, source + rng.integers(-2, 3, 5000))
    assert max(BucketBatches(Sizes(source, target), 2000, seed=1).padding_share(1)) < 0.06


def test_planning_a_million_pairs_costs_a_few_sorts() -> None:
    rng = np.random.default_rng(1)
    source = rng.poisson(12, 1_000_000) + 1
    buckets = BucketBatches(Sizes(source, source + rng.integers(0, 4, len(source))), 4000, seed=1)
    before = time.process_time()
    np.argsort(rng.permutation(1_000_000).astype(np.int32), kind="stable")
    one_sort = time.process_time() - before
    before = time.process_time()
    plan = buckets.epoch_plan(1)
    assert time.process_time() - before < 40 * one_sort  # about 4 on a quiet machine
    assert np.array_equal(np.sort(plan.rows), np.arange(1_000_000))
    assert max(buckets.padding_share(1)) < 0.01


@pytest.mark.skipif(not MULTI30K.is_dir(), reason="needs multi30k under HEEDFUL_DATA")
def test_padding_on_multi30k_is_below_five_percent_on_each_side() -> None:
    pairs = list(PairFiles(["train.en.gz", "train.de.gz"], MULTI30K))
    source, target = train_tokenizers(pairs, TokenizerConfig(kind="bpe", vocab_size=8_000))
    sources = source.encode_all([pair.source for pair in pairs])
    targets = target.encode_all([pair.target for pair in pairs])
    sizes = Sizes(np.array([*map(len, sources)]), np.array([*map(len, targets)]))
    for batch_tokens, max_rows, limit in ((2_000, None, 0.03), (4_000, None, 0.04), (10**6, 100, 0.03)):
        buckets = BucketBatches(sizes, batch_tokens, seed=1, max_rows=max_rows)
        for epoch in (1, 2):
            assert max(buckets.padding_share(epoch)) < limit


def test_without_examples_there_are_no_batches() -> None:
    buckets = BucketBatches([], 10, seed=1)
    assert list(buckets.batches(1)) == []
    assert buckets.batch_rows(1) == []
    assert buckets.n_batches(1) == 0
    assert buckets.padding_share(1).both == 0.0


def test_a_batch_keeps_ids_and_masks_together() -> None:
    batch = collate([EncodedPair([5, 6, END], [7, END]), EncodedPair([END], [8, 9, END])])
    assert source_ids(batch) == [[5, 6, END], [END, 0, 0]]
    assert batch.source.keep.tolist() == [[True] * 3, [True, False, False]]
    assert batch.target is not None
    assert batch.target.ids.tolist() == [[START, 7, END, 0], [START, 8, 9, END]]
    assert batch.target.lengths.tolist() == [3, 4]
    moved = batch.to(torch.device("cpu"))
    assert source_ids(moved) == source_ids(batch)

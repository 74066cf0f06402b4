"""Buckets contain every item once; recall by position against counts by hand."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import DataError
from heedful.metrics import bleu, choose_edges, metric_by_length, recall_by_position, rouge, split_words

lengths_lists = st.lists(st.integers(0, 60), min_size=1, max_size=50)


@given(lengths_lists, st.none() | st.sets(st.integers(0, 60), min_size=1, max_size=6).map(sorted), st.randoms())
def test_every_item_is_in_the_bucket_of_its_length(
    lengths: list[int], edges: list[int] | None, rng: random.Random
) -> None:
    correct = [rng.random() < 0.5 for _ in lengths]
    outputs = ["a" if good else "b" for good in correct]
    buckets = metric_by_length(lengths, outputs, ["a"] * len(lengths), metric="exact", edges=edges)
    assert sum(bucket.items for bucket in buckets) == len(lengths)
    assert sum(bucket.items * bucket.mean_length for bucket in buckets) == pytest.approx(sum(lengths))
    assert sum(bucket.items * bucket.metric.value for bucket in buckets) == pytest.approx(100 * sum(correct))
    for bucket in buckets:
        high = bucket.high if bucket.high is not None else 10**9
        inside = [i for i, length in enumerate(lengths) if bucket.low <= length <= high]
        assert bucket.items == len(inside) > 0
        assert bucket.metric.value == pytest.approx(100 * sum(correct[i] for i in inside) / len(inside))


@given(lengths_lists, st.integers(1, 8))
def test_chosen_edges_are_lengths_and_cover_all_items(lengths: list[int], buckets: int) -> None:
    edges = choose_edges(lengths, buckets)
    assert list(edges) == sorted(set(edges))
    assert edges[-1] == max(lengths)
    assert len(edges) <= buckets
    assert set(edges) <= set(lengths)


def test_chosen_buckets_contain_about_equally_many_items() -> None:
    lengths = [int(random.Random(i).expovariate(0.05)) + 1 for i in range(1000)]  # many short, few long
    buckets = metric_by_length(lengths, ["a"] * 1000, ["a"] * 1000, metric="exact")
    assert len(buckets) == 5
    assert all(150 <= bucket.items <= 250 for bucket in buckets)
    assert buckets[0].low == 0
    assert all(before.high is not None and after.low == before.high + 1 for before, after in pairwise(buckets))


def test_bleu_of_a_bucket_is_the_bleu_of_its_items() -> None:
    outputs = ["a b c d e", "a b c x e f", "q r s t u v w"]
    references = ["a b c d f", "a b c d e f", "q r s t u v w"]
    short, long = metric_by_length([5, 6, 30], outputs, references, edges=[10])
    assert short.metric == bleu(outputs[:2], references[:2])
    assert long.metric == bleu(outputs[2:], references[2:])
    assert (short.low, short.high, long.low, long.high) == (0, 10, 11, None)


def test_impossible_buckets_are_an_error() -> None:
    with pytest.raises(DataError, match="2 lengths but 1 outputs"):
        metric_by_length([1, 2], ["a"], ["a"])
    with pytest.raises(DataError, match="-1 is below 0"):
        metric_by_length([-1], ["a"], ["a"])
    for edges in ([], [5, 5], [9, 3], [-2, 3]):
        with pytest.raises(DataError, match=r"edges = .*expected ascending"):
            metric_by_length([1], ["a"], ["a"], edges=edges)
    with pytest.raises(DataError, match='"blue": no such metric; did you mean "bleu"'):
        metric_by_length([1], ["a"], ["a"], metric="blue")
    with pytest.raises(DataError, match="bins = 0"):
        recall_by_position(["a"], ["a"], bins=0)
    with pytest.raises(DataError, match="recall by position takes one reference per output; output 1 has 2"):
        recall_by_position(["a"], [["a", "b"]])


def test_recall_by_position_has_the_values_computed_by_hand() -> None:
    # ten words, two per bin: both missing; both matched; `the` is matched at one of its two positions; ...
    reference = "once upon a time the old king of the sea."
    output = "Time, a king, of the sea"
    bins = recall_by_position([output], [reference])
    assert [b.words for b in bins] == [2, 2, 2, 2, 2]
    assert [b.matches for b in bins] == [0, 2, 0.5, 2, 1.5]
    assert [b.recall for b in bins] == [0, 100, 25, 100, 75]
    assert [(b.low, b.high) for b in bins] == [(k / 5, (k + 1) / 5) for k in range(5)]


def test_outputs_without_their_beginning_have_no_recall_there() -> None:
    references = ["a b c d e f g h i j"] * 3
    first, *_, last = recall_by_position(["f g h i j"] * 3, references)
    assert (first.recall, last.recall) == (0, 100)


def test_punctuation_does_not_raise_the_recall_of_the_end() -> None:
    assert recall_by_position(["nothing ."], ["we saw it ."])[-1].recall == 0
    assert recall_by_position(["nothing ."], ["we saw it ."], split=str.split)[-1].recall == 100


def test_short_sentences_fall_into_the_bins_of_their_midpoints() -> None:
    assert [(round(b.low, 1), b.words) for b in recall_by_position(["x"], ["a"])] == [(0.4, 1)]
    assert [round(b.low, 1) for b in recall_by_position(["x"], ["a b"])] == [0.2, 0.6]
    assert [round(b.low, 1) for b in recall_by_position(["x"], ["a b c"])] == [0.0, 0.4, 0.8]
    assert recall_by_position(["x"], ["..."]) == []


letters = st.lists(st.sampled_from("abcd"), min_size=1, max_size=12).map(" ".join)


@given(st.lists(st.tuples(letters, letters), min_size=1, max_size=5), st.sampled_from([1, 3, 5, 7]))
def test_bins_sum_to_the_clipped_matches_and_mirror(pairs: list[tuple[str, str]], n_bins: int) -> None:
    outputs, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    bins = recall_by_position(outputs, references, bins=n_bins)
    matches = sum((Counter(split_words(o)) & Counter(split_words(r))).total() for o, r in pairs)
    assert sum(b.matches for b in bins) == pytest.approx(matches)
    assert sum(b.words for b in bins) == sum(len(split_words(r)) for r in references)
    mirrored = recall_by_position(outputs, [r[::-1] for r in references], bins=n_bins)
    assert [p.words for p in mirrored] == [p.words for p in reversed(bins)]
    assert [p.matches for p in mirrored] == pytest.approx([p.matches for p in reversed(bins)])


def test_one_bin_equals_rouge_1_recall() -> None:
    output, reference = "the old man and the sea", "an old man fished the gulf stream"
    (single,) = recall_by_position([output], [reference], bins=1)
    (recall,) = rouge([output], [reference], variants=["1"], parts=["recall"])
    assert single.recall == pytest.approx(recall.value)

"""Buckets: nothing lost, nothing twice; recall by place counted by hand."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import DataError
from heedful.evaluation import bleu, by_length, by_place, choose_edges, rouge, words

lengths_lists = st.lists(st.integers(0, 60), min_size=1, max_size=50)


@given(
    lengths_lists, st.none() | st.sets(st.integers(0, 60), min_size=1, max_size=6).map(sorted), st.randoms()
)
def test_every_item_is_in_the_one_bucket_of_its_length(
    lengths: list[int], edges: list[int] | None, rng: random.Random
) -> None:
    right = [rng.random() < 0.5 for _ in lengths]
    outputs = ["a" if good else "b" for good in right]
    buckets = by_length(lengths, outputs, ["a"] * len(lengths), metric="exact", edges=edges)
    assert sum(bucket.items for bucket in buckets) == len(lengths)
    assert sum(bucket.items * bucket.mean_length for bucket in buckets) == pytest.approx(sum(lengths))
    assert sum(bucket.items * bucket.metric.value for bucket in buckets) == pytest.approx(100 * sum(right))
    for bucket in buckets:
        high = bucket.high if bucket.high is not None else 10**9
        inside = [i for i, length in enumerate(lengths) if bucket.low <= length <= high]
        assert bucket.items == len(inside) > 0
        assert bucket.metric.value == pytest.approx(100 * sum(right[i] for i in inside) / len(inside))


@given(lengths_lists, st.integers(1, 8))
def test_chosen_edges_cover_all_and_cut_where_the_quantiles_are(lengths: list[int], buckets: int) -> None:
    edges = choose_edges(lengths, buckets)
    assert list(edges) == sorted(set(edges))
    assert edges[-1] == max(lengths)
    assert len(edges) <= buckets
    assert set(edges) <= set(lengths)


def test_chosen_buckets_hold_about_equally_many() -> None:
    lengths = [int(random.Random(i).expovariate(0.05)) + 1 for i in range(1000)]  # many short, few long
    buckets = by_length(lengths, ["a"] * 1000, ["a"] * 1000, metric="exact")
    assert len(buckets) == 5
    assert all(150 <= bucket.items <= 250 for bucket in buckets)
    assert buckets[0].low == 0
    assert all(
        before.high is not None and after.low == before.high + 1 for before, after in pairwise(buckets)
    )


def test_bleu_of_a_bucket_is_the_bleu_of_its_items() -> None:
    outputs = ["a b c d e", "a b c x e f", "q r s t u v w"]
    references = ["a b c d f", "a b c d e f", "q r s t u v w"]
    short, long = by_length([5, 6, 30], outputs, references, edges=[10])
    assert short.metric == bleu(outputs[:2], references[:2])
    assert long.metric == bleu(outputs[2:], references[2:])
    assert (short.low, short.high, long.low, long.high) == (0, 10, 11, None)


def test_buckets_that_cannot_be() -> None:
    with pytest.raises(DataError, match="2 lengths but 1 outputs"):
        by_length([1, 2], ["a"], ["a"])
    with pytest.raises(DataError, match="-1 is below 0"):
        by_length([-1], ["a"], ["a"])
    for edges in ([], [5, 5], [9, 3], [-2, 3]):
        with pytest.raises(DataError, match=r"edges = .*expected ascending"):
            by_length([1], ["a"], ["a"], edges=edges)
    with pytest.raises(DataError, match='"blue": no such metric; did you mean "bleu"'):
        by_length([1], ["a"], ["a"], metric="blue")
    with pytest.raises(DataError, match="parts = 0"):
        by_place(["a"], ["a"], parts=0)
    with pytest.raises(DataError, match="recall by place takes one reference an output; output 1 has 2"):
        by_place(["a"], [["a", "b"]])


def test_recall_by_place_by_hand() -> None:
    # ten words, two a fifth: both lost; one lost; `the` is kept at one of its two places; ...
    reference = "once upon a time the old king of the sea."
    output = "Time, a king, of the sea"
    places = by_place([output], [reference])
    assert [place.words for place in places] == [2, 2, 2, 2, 2]
    assert [place.found for place in places] == [0, 2, 0.5, 2, 1.5]
    assert [place.recall for place in places] == [0, 100, 25, 100, 75]
    assert [(place.low, place.high) for place in places] == [(k / 5, (k + 1) / 5) for k in range(5)]


def test_the_end_of_a_sentence_that_forgets_its_beginning() -> None:
    references = ["a b c d e f g h i j"] * 3
    first, *_, last = by_place(["f g h i j"] * 3, references)
    assert (first.recall, last.recall) == (0, 100)


def test_punctuation_does_not_flatter_the_end() -> None:
    assert by_place(["nothing ."], ["we saw it ."])[-1].recall == 0
    assert by_place(["nothing ."], ["we saw it ."], split=str.split)[-1].recall == 100


def test_short_sentences_fall_into_the_middle_of_their_share() -> None:
    assert [(round(place.low, 1), place.words) for place in by_place(["x"], ["a"])] == [(0.4, 1)]
    assert [round(place.low, 1) for place in by_place(["x"], ["a b"])] == [0.2, 0.6]
    assert [round(place.low, 1) for place in by_place(["x"], ["a b c"])] == [0.0, 0.4, 0.8]
    assert by_place(["x"], ["..."]) == []


letters = st.lists(st.sampled_from("abcd"), min_size=1, max_size=12).map(" ".join)


@given(st.lists(st.tuples(letters, letters), min_size=1, max_size=5), st.sampled_from([1, 3, 5, 7]))
def test_the_places_sum_to_the_clipped_matches_and_mirror(pairs: list[tuple[str, str]], parts: int) -> None:
    outputs, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    places = by_place(outputs, references, parts=parts)
    matches = sum((Counter(words(o)) & Counter(words(r))).total() for o, r in pairs)
    assert sum(place.found for place in places) == pytest.approx(matches)
    assert sum(place.words for place in places) == sum(len(words(r)) for r in references)
    mirrored = by_place(outputs, [r[::-1] for r in references], parts=parts)
    assert [p.words for p in mirrored] == [p.words for p in reversed(places)]
    assert [p.found for p in mirrored] == pytest.approx([p.found for p in reversed(places)])


def test_the_whole_of_one_sentence_is_its_rouge_1_recall() -> None:
    output, reference = "the old man and the sea", "an old man fished the gulf stream"
    (whole,) = by_place([output], [reference], parts=1)
    (recall,) = rouge([output], [reference], kinds=["1"], parts=["recall"])
    assert whole.recall == pytest.approx(recall.value)

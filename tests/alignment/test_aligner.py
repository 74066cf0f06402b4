"""The statistical aligner: C and torch against plain loops, symmetrization against its pseudo-code, and its links."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator

import pytest
import torch

from heedful.alignment import SYMMETRIZATIONS, AlignerOptions, align_pairs, symmetrize
from heedful.alignment.parallel_text import MAX_WORDS, number_words
from heedful.data.worlds import phrases
from heedful.errors import DataError, ShapeError
from heedful.kernels import loader
from heedful.kernels.alignment import (
    PairTable,
    ParallelIds,
    Prior,
    expected_links,
    likeliest_links,
    make_pair_table,
)
from heedful.metrics.alignment import score_alignment
from heedful.trace.schema.links import Link, grade_links

Sentence = tuple[list[int], list[int]]  # source ids from 1, target ids from 0


@pytest.fixture(params=["C", "torch"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "torch":
        monkeypatch.setattr(loader, "_load", lambda: None)
    elif loader.library() is None:
        pytest.skip("the kernels are not built")
    return str(request.param)


def draw_sentences(rng: random.Random, count: int) -> list[Sentence]:
    """Sentences of 0 to 7 words, from 5 source and 4 target words."""
    return [
        ([rng.randint(1, 5) for _ in range(rng.randint(0, 7))], [rng.randint(0, 3) for _ in range(rng.randint(0, 7))])
        for _ in range(count)
    ]


def join(sentences: list[Sentence]) -> ParallelIds:
    tensors = []
    for side in (0, 1):
        ids = [i for sentence in sentences for i in sentence[side]]
        ends = [0]
        for sentence in sentences:
            ends.append(ends[-1] + len(sentence[side]))
        tensors += [torch.tensor(ids, dtype=torch.long), torch.tensor(ends)]
    return ParallelIds(*tensors)


def entries(table: PairTable) -> list[tuple[int, int]]:
    """(e, f) of every entry of a table."""
    return [
        (int(e), f)
        for f in range(table.n_targets)
        for e in table.sources[int(table.offsets[f]) : int(table.offsets[f + 1])]
    ]


def joint_probabilities(
    sentence: Sentence, j: int, t: dict[tuple[int, int], float], null: float, tension: float
) -> tuple[list[float], list[float], list[float]]:
    """p(a_j = i, f_j) for null and every i, the prior of every i, and |i/m - j/n|: Dyer 2013, eq. 1, as printed."""
    source, target = sentence
    m, n, f = len(source), len(target), target[j]
    h = [abs((i + 1) / m - (j + 1) / n) for i in range(m)]
    z = sum(math.exp(-tension * x) for x in h)
    prior = [math.exp(-tension * x) / z for x in h]
    return [null * t[0, f]] + [(1 - null) * p * t[e, f] for p, e in zip(prior, source, strict=True)], prior, h


@pytest.mark.parametrize("tension", [0.0, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_expectations_and_links_equal_plain_loops(implementation: str, seed: int, tension: float) -> None:
    rng = random.Random(seed)
    sentences = draw_sentences(rng, 30 if seed else 0)
    table = make_pair_table(join(sentences), 6, 4)
    pairs = entries(table)
    beside = {(0, f) for f in range(4)} | {(e, f) for source, target in sentences for e in source for f in target}
    assert pairs == sorted(beside, key=lambda pair: (pair[1], pair[0]))
    t = {pair: rng.uniform(0.01, 1) for pair in pairs}
    probabilities = torch.tensor([t[pair] for pair in pairs], dtype=torch.float32)
    counts: dict[tuple[int, int], float] = defaultdict(float)
    likelihood = distance = expected = variance = 0.0
    links = []
    for sentence in sentences:
        for j, f in enumerate(sentence[1]):
            joint, prior, h = joint_probabilities(sentence, j, t, 0.08, tension)
            total = sum(joint)
            for i, p in enumerate(joint):
                counts[0 if i == 0 else sentence[0][i - 1], f] += p / total
                distance += p / total * h[i - 1] if i else 0.0
            mean = sum(p * x for p, x in zip(prior, h, strict=True))
            expected += (1 - joint[0] / total) * mean
            variance += (1 - joint[0] / total) * sum(p * (x - mean) ** 2 for p, x in zip(prior, h, strict=True))
            likelihood += math.log(total)
            links.append(joint.index(max(joint)) - 1)
    expectation = expected_links(table, probabilities, Prior(0.08, tension))
    assert expectation.counts.tolist() == pytest.approx([counts[pair] for pair in pairs], rel=1e-4, abs=1e-6)
    assert expectation[1:] == pytest.approx((likelihood, distance, expected, variance), rel=1e-4, abs=1e-5)
    assert likeliest_links(table, probabilities, Prior(0.08, tension)).tolist() == links


def test_ids_outside_the_vocabulary_and_wrong_offsets_are_errors(implementation: str) -> None:
    ids = join([([1, 2], [0]), ([1], [1, 1])])
    with pytest.raises(ShapeError, match="source word 2 does not exist: only 0 to 1 exist"):
        make_pair_table(ids, 2, 2)
    with pytest.raises(ShapeError, match="target word 1 does not exist"):
        make_pair_table(ids, 3, 1)
    with pytest.raises(ShapeError, match="there are 2 sources, but 1 targets"):
        make_pair_table(ids._replace(target_offsets=torch.tensor([0, 3])), 3, 2)
    with pytest.raises(ShapeError, match="source_offsets must start at 0"):
        make_pair_table(ids._replace(source_offsets=torch.tensor([0, 9, 3])), 3, 2)
    table = make_pair_table(ids, 3, 2)
    with pytest.raises(ShapeError, match="probabilities in float32"):
        expected_links(table, torch.ones(len(table.sources) - 1), Prior())


def world(count: int) -> Iterator[tuple[str, str, set[Link]]]:
    for pair in phrases.draw_splits({"train": count, "valid": 1, "test": 1}, 1)["train"]:
        yield " ".join(pair.source), " ".join(pair.target), set(pair.links)


def test_both_implementations_find_the_links_of_the_phrase_world(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = list(world(1_500))
    texts, gold = [pair[:2] for pair in pairs[:300]], [grade_links(pair[2]) for pair in pairs[:300]]
    extra = [pair[:2] for pair in pairs[300:]]
    found = [pair.links for pair in align_pairs(texts, extra)]
    assert score_alignment(found, gold).aer < 15
    plain = [pair.links for pair in align_pairs(texts, extra, AlignerOptions("ibm1"))]
    assert score_alignment(found, gold).aer < score_alignment(plain, gold).aer
    monkeypatch.setattr(loader, "_load", lambda: None)
    assert score_alignment([pair.links for pair in align_pairs(texts, extra)], gold).aer == pytest.approx(
        score_alignment(found, gold).aer, abs=0.5
    )


@pytest.mark.parametrize("keep_places", [True, False])
def test_the_tension_rises_where_words_keep_their_places_and_falls_where_they_do_not(keep_places: bool) -> None:
    rng = random.Random(1)
    pairs = []
    for _ in range(200):
        words = rng.sample("abcdefghijklmnopqrst", 8)
        target = words if keep_places else rng.sample(words, 8)
        pairs.append((" ".join(words), " ".join(target).upper()))
    log: list[str] = []
    list(align_pairs(pairs, log=log.append))
    tensions = [float(line.rpartition(" ")[2]) for line in log]
    assert [tension > 4 for tension in (tensions[4], tensions[-1])] == [keep_places] * 2


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    texts = [pair[:2] for pair in world(200)]
    threads = torch.get_num_threads()
    try:
        results = []
        for count in (1, 2):
            torch.set_num_threads(count)
            results.append(list(align_pairs(texts)))
    finally:
        torch.set_num_threads(threads)
    assert results[0] == results[1]


def test_case_and_endings_can_be_ignored() -> None:
    pairs = [("Dogs bark", "Hunde bellen")]
    assert number_words([*pairs, ("dogs", "hunde")]).source.size == 3
    assert number_words([*pairs, ("dogs", "hunde")], lowercase=False).source.size == 4
    assert number_words([*pairs, ("dogma", "hund")], prefix=3).source.size == 3


def test_a_pair_that_is_too_long_gets_no_links_and_no_pairs_are_an_error() -> None:
    log: list[str] = []
    first, second = align_pairs([("a " * (MAX_WORDS + 1), "b"), ("a", "b")], log=log.append)
    assert (first.links, second.links) == (set(), {(0, 0)})
    assert log[0] == "1 pair(s) have more than 1,000 words on a side and get no links"
    with pytest.raises(DataError, match="there are no sentence pairs to align"):
        list(align_pairs([]))


def published_grow_diag_final_and(e2f: set[Link], f2e: set[Link], final: bool) -> set[Link]:
    """The pseudo-code of Koehn 2003 and of the Moses manual, loop by loop."""
    neighboring = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
    alignment, size = e2f & f2e, 9
    union = e2f | f2e

    def aligned(side: int, word: int) -> bool:
        return any(link[side] == word for link in alignment)

    while True:
        added = False
        for e in range(size):
            for f in range(size):
                if (e, f) not in alignment:
                    continue
                for de, df in neighboring:
                    new = (e + de, f + df)
                    if (not aligned(0, new[0]) or not aligned(1, new[1])) and new in union and new not in alignment:
                        alignment.add(new)
                        added = True
        if not added:
            break
    for direction in (e2f, f2e) if final else ():
        for e in range(size):
            for f in range(size):
                if not aligned(0, e) and not aligned(1, f) and (e, f) in direction:
                    alignment.add((e, f))
    return alignment


@pytest.mark.parametrize("seed", range(60))
def test_growing_the_diagonal_equals_the_published_loops(seed: int) -> None:
    rng = random.Random(seed)
    forward = {(rng.randrange(9), t) for t in range(9) if rng.random() < 0.8}
    reverse = {(s, rng.randrange(9)) for s in range(9) if rng.random() < 0.8}
    near = {(min(8, max(0, t + rng.randint(-1, 1))), t) for t in range(9)}
    near_reverse = {
        (s, min(8, max(0, s + rng.randint(-1, 1)))) for s in range(9)
    }  # here the order of additions matters
    for one, other in ((forward, reverse), (near, reverse), (near, near_reverse)):
        for method, final in (("grow-diag-final-and", True), ("grow-diag", False)):
            assert symmetrize(one, other, method) == published_grow_diag_final_and(set(one), set(other), final)  # type: ignore[arg-type]


def test_every_symmetrization_lies_between_intersection_and_union() -> None:
    forward, reverse = {(0, 0), (1, 1), (1, 2)}, {(0, 0), (1, 1), (2, 2), (3, 0)}
    for method in SYMMETRIZATIONS:
        assert symmetrize(forward, reverse, method) <= forward | reverse
    assert symmetrize(forward, reverse, "forward") == forward
    assert symmetrize(forward, reverse, "reverse") == reverse

"""Every entry of every table against the plain loops of `reference.py`, in float64, to 1e-10."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from attention.agreement import agrees
from attention.helpers import (
    COMBINATIONS,
    COVERED,
    POSITIONS,
    SCORE_NAMES,
    TABLE,
    build,
    close,
    mask,
    scene,
)
from attention.oracle import NORMALISER_ORACLES, PLACEMENT_ORACLES, SCORE_ORACLES, Oracle
from heedful.attention import NORMALISERS, PLACEMENTS, SCORES
from heedful.attention import coverage_loss as coverage_loss_of


@pytest.mark.parametrize(("score", "normaliser", "placement"), COMBINATIONS)
def test_a_look_gives_what_the_equations_give(score: str, normaliser: str, placement: str) -> None:
    given = scene(score)
    attention = build(score, normaliser, placement)
    oracle = Oracle.of(attention, score, normaliser, placement)
    agrees(attention, oracle, given, allow=given.allow, steps=3 if score == COVERED else 1)


@pytest.mark.parametrize("placement", PLACEMENT_ORACLES)
def test_without_a_further_mask_all_that_is_kept_may_be_read(placement: str) -> None:
    attention = build("general", placement=placement)
    agrees(attention, Oracle.of(attention, "general", "softmax", placement), scene("general"))


@pytest.mark.parametrize("rows", [slice(0, 1), slice(None)], ids=["one sentence's", "each sentence's"])
@pytest.mark.parametrize("columns", [slice(0, 1), slice(None)], ids=["one query's", "each query's"])
def test_a_further_mask_may_be_shared(rows: slice, columns: slice) -> None:
    attention = build("general")
    allow = scene(seed=5).allow.flip(1)[rows, columns]  # flipped: the first query is restricted, too
    agrees(attention, Oracle.of(attention, "general", "softmax", "global"), scene("general"), allow=allow)


def test_the_contract_covers_every_entry_of_every_table() -> None:
    """A new entry without an oracle, or an oracle that no case uses, turns this red."""
    scores, normalisers, placements = (set(names) for names in zip(*COMBINATIONS, strict=True))
    assert scores == set(SCORES) | {COVERED} == set(SCORE_ORACLES)
    assert normalisers == set(NORMALISERS) == set(NORMALISER_ORACLES)
    assert placements == set(PLACEMENT_ORACLES)
    assert {name.split()[0] for name in placements} == set(PLACEMENTS)
    refused = {c for c in product(scores, normalisers, placements) if c not in set(COMBINATIONS)}
    assert {(n, p.split()[0]) for _, n, p in refused} == {("smoothed-softmax", "hard")}


@pytest.mark.parametrize("placement", PLACEMENT_ORACLES)
@pytest.mark.parametrize("score", SCORE_NAMES)
def test_without_the_end_token_the_last_readable_position_of_each_sentence_is_closed(
    score: str, placement: str
) -> None:
    """It is closed before anything else is worked out: T of the local placements is one less, too."""
    attention = build(score, placement=placement, read_end=False)
    closed = mask("1111110", "1110000", "0101100", "0000000", "0000000")
    oracle = Oracle.of(attention, score, "softmax", placement)
    agrees(attention, oracle, scene(score), source=closed)


@pytest.mark.parametrize("placement", PLACEMENT_ORACLES)
def test_location_can_ignore_the_tail_of_a_longer_source(placement: str) -> None:
    """What lies past the table is as if it were not there; it is recorded with a score of 0."""
    given = scene("location")
    table = 5
    attention = build("location", placement=placement, table=table, longer="ignore")
    cut = given.keep & (torch.arange(POSITIONS) < table)
    whole = Oracle.of(attention, "location", "softmax", placement)
    tail = [[0.0] * given.query.shape[-1]] * (POSITIONS - table)  # rows of zeros score 0
    rows = {**whole.parameters, "score.rows.weight": whole.parameters["score.rows.weight"] + tail}
    agrees(attention, Oracle("location", "softmax", placement, 0, rows), given, source=cut)


def test_location_reads_a_source_whose_padding_alone_is_longer_than_the_table() -> None:
    given = scene("location")
    short = mask("1111100", "1111000", "0101100", "0000000", "0010000")
    attention = build("location", table=5)
    known = build("location", table=TABLE)
    known.load_state_dict({"score.rows.weight": torch.zeros(TABLE, given.query.shape[-1])})
    with torch.no_grad():
        known.get_parameter("score.rows.weight")[:5] = attention.get_parameter("score.rows.weight")
    agrees(attention, Oracle.of(known, "location", "softmax", "global"), given._replace(keep=short))


@pytest.mark.parametrize("score", SCORE_NAMES)
def test_a_memory_made_in_parts_is_the_memory_made_at_once(score: str) -> None:
    attention, given = build(score), scene(score)
    whole = attention.prepare(given.keys, given.keep, given.values)
    first, second, third = (
        attention.prepare(given.keys[:, part], given.keep[:, part], given.values[:, part])
        for part in (slice(2), slice(2, 3), slice(3, 7))
    )
    parts = first.append(second).append(third)
    assert torch.equal(parts.keep, whole.keep)
    close(parts.keys, whole.keys, 1e-12)
    close(parts.values, whole.values, 0.0)


@pytest.mark.parametrize("placement", ["local-m", "global"])
def test_queries_stand_at_0_1_2_unless_told_otherwise(placement: str) -> None:
    given = scene()
    attention = build(placement=placement)
    memory = attention.prepare(given.keys, given.keep, given.values)
    at = torch.arange(given.query.shape[1]).expand(given.query.shape[:2])
    close(attention.look(given.query, memory)[0], attention.look(given.query, memory, at=at)[0], 0.0)
    agrees(attention, Oracle.of(attention, "additive", "softmax", placement), given._replace(at=at))


def test_values_are_the_keys_unless_given() -> None:
    given = scene()
    attention = build()
    implied = attention.prepare(given.keys, given.keep)
    named = attention.prepare(given.keys, given.keep, given.keys)
    close(attention.look(given.query, implied)[0], attention.look(given.query, named)[0], 0.0)


def test_the_coverage_loss_is_the_sum_of_the_smaller() -> None:
    weights = torch.tensor([0.5, 0.25, 0.25]).view(1, 1, 1, 3)
    coverage = torch.tensor([0.0, 1.0, 0.125]).view(1, 1, 1, 3)
    assert coverage_loss_of(weights, coverage).tolist() == [[[0.375]]]

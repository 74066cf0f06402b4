"""Every score, normalizer and placement against the plain loops of `reference.py`, in float64, to 1e-10."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from attention.against_oracle import assert_agrees
from attention.helpers import (
    COMBINATIONS,
    COVERED,
    NORMALIZERS,
    PLACEMENTS,
    POSITIONS,
    SCORE_NAMES,
    SCORES,
    TABLE,
    attend,
    build,
    close,
    make_inputs,
    mask,
)
from attention.oracle import NORMALIZER_ORACLES, PLACEMENT_ORACLES, Oracle
from heedful.attention import coverage_loss as coverage_loss_of


@pytest.mark.parametrize(("score", "normalizer", "placement"), COMBINATIONS)
def test_attention_equals_the_reference(score: str, normalizer: str, placement: str) -> None:
    inputs = make_inputs(score)
    attention = build(score, normalizer, placement)
    oracle = Oracle.of(attention, score, normalizer, placement)
    assert_agrees(attention, oracle, inputs, allowed=inputs.allowed, steps=3 if score == COVERED else 1)


@pytest.mark.parametrize("placement", PLACEMENT_ORACLES)
def test_without_a_further_mask_every_kept_key_may_be_read(placement: str) -> None:
    attention = build("general", placement=placement)
    assert_agrees(attention, Oracle.of(attention, "general", "softmax", placement), make_inputs("general"))


@pytest.mark.parametrize("rows", [slice(0, 1), slice(None)], ids=["one sentence's", "each sentence's"])
@pytest.mark.parametrize("columns", [slice(0, 1), slice(None)], ids=["one query's", "each query's"])
def test_a_further_mask_may_be_shared(rows: slice, columns: slice) -> None:
    attention = build("general")
    allowed = make_inputs(seed=5).allowed.flip(1)[rows, columns]  # flipped: the first query is restricted, too
    assert_agrees(
        attention, Oracle.of(attention, "general", "softmax", "global"), make_inputs("general"), allowed=allowed
    )


def test_every_name_has_a_reference_and_a_case() -> None:
    """This fails for a new name without a reference, and for a reference without a case."""
    scores, normalizers, placements = (set(names) for names in zip(*COMBINATIONS, strict=True))
    assert scores == {*SCORES, COVERED}
    assert normalizers == set(NORMALIZERS) == set(NORMALIZER_ORACLES)
    assert placements == set(PLACEMENT_ORACLES)
    assert {name.split()[0] for name in placements} == set(PLACEMENTS)
    refused = {c for c in product(scores, normalizers, placements) if c not in set(COMBINATIONS)}
    assert {(n, p.split()[0]) for _, n, p in refused} == {("smoothed-softmax", "hard")}


@pytest.mark.parametrize("placement", PLACEMENT_ORACLES)
@pytest.mark.parametrize("score", SCORE_NAMES)
def test_without_the_end_token_the_last_kept_key_of_each_sentence_is_masked(score: str, placement: str) -> None:
    """It is masked before all else: T of the local placements is one less, too."""
    attention = build(score, placement=placement, read_end=False)
    masked = mask("1111110", "1110000", "0101100", "0000000", "0000000")
    oracle = Oracle.of(attention, score, "softmax", placement)
    assert_agrees(attention, oracle, make_inputs(score), source=masked)


@pytest.mark.parametrize("placement", PLACEMENT_ORACLES)
def test_location_can_ignore_the_tail_of_a_longer_source(placement: str) -> None:
    """Positions beyond the table are masked and recorded with a score of 0."""
    inputs = make_inputs("location")
    table = 5
    attention = build("location", placement=placement, max_source_positions=table, on_too_long="ignore")
    cut = inputs.keep & (torch.arange(POSITIONS) < table)
    full = Oracle.of(attention, "location", "softmax", placement)
    tail = [[0.0] * inputs.query.shape[-1]] * (POSITIONS - table)  # rows of zeros score 0
    rows = {**full.parameters, "score.rows.weight": full.parameters["score.rows.weight"] + tail}
    assert_agrees(attention, Oracle("location", "softmax", placement, 0, rows), inputs, source=cut)


def test_location_accepts_a_source_of_which_only_the_padding_exceeds_the_table() -> None:
    inputs = make_inputs("location")
    short = mask("1111100", "1111000", "0101100", "0000000", "0010000")
    attention = build("location", max_source_positions=5)
    known = build("location", max_source_positions=TABLE)
    known.load_state_dict({"score.rows.weight": torch.zeros(TABLE, inputs.query.shape[-1])})
    with torch.no_grad():
        known.get_parameter("score.rows.weight")[:5] = attention.get_parameter("score.rows.weight")
    assert_agrees(attention, Oracle.of(known, "location", "softmax", "global"), inputs._replace(keep=short))


@pytest.mark.parametrize("score", SCORE_NAMES)
def test_a_memory_prepared_in_parts_equals_one_prepared_at_once(score: str) -> None:
    attention, inputs = build(score), make_inputs(score)
    full = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    first, second, third = (
        attention.prepare(inputs.keys[:, part], inputs.keep[:, part], inputs.values[:, part])
        for part in (slice(2), slice(2, 3), slice(3, 7))
    )
    parts = first.append(second).append(third)
    assert torch.equal(parts.keep, full.keep)
    close(parts.keys, full.keys, 1e-12)
    close(parts.values, full.values, 0.0)


@pytest.mark.parametrize("placement", ["local-m", "global"])
def test_positions_default_to_0_1_2(placement: str) -> None:
    inputs = make_inputs()
    attention = build(placement=placement)
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    positions = torch.arange(inputs.query.shape[1]).expand(inputs.query.shape[:2])
    close(
        attend(attention, inputs.query, memory)[0], attend(attention, inputs.query, memory, positions=positions)[0], 0.0
    )
    assert_agrees(
        attention, Oracle.of(attention, "additive", "softmax", placement), inputs._replace(positions=positions)
    )


def test_values_default_to_the_keys() -> None:
    inputs = make_inputs()
    attention = build()
    implied = attention.prepare(inputs.keys, inputs.keep)
    named = attention.prepare(inputs.keys, inputs.keep, inputs.keys)
    close(attend(attention, inputs.query, implied)[0], attend(attention, inputs.query, named)[0], 0.0)


def test_the_coverage_loss_is_the_sum_of_minima() -> None:
    weights = torch.tensor([0.5, 0.25, 0.25]).view(1, 1, 1, 3)
    coverage = torch.tensor([0.0, 1.0, 0.125]).view(1, 1, 1, 3)
    assert coverage_loss_of(weights, coverage).tolist() == [[[0.375]]]

"""Shapes and settings that do not match are refused, naming both; the tests' own shape checker is off here."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from attention.helpers import COVERED, NORMALIZERS, PLACEMENTS, SAME_SIZE, SCORES, build, make_inputs, mask
from heedful.attention import (
    Additive,
    Attention,
    Hard,
    Heads,
    LocalM,
    LocalP,
    SmoothedSoftmax,
    build_attention,
)
from heedful.config import AttentionConfig
from heedful.errors import ShapeError

pytestmark = pytest.mark.usefixtures("as_users_run")


def zeros(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.float64)


def test_a_source_longer_than_the_table_of_a_location_score_is_refused() -> None:
    inputs = make_inputs("location")
    attention = build("location", max_source_positions=6)
    with pytest.raises(ShapeError, match=r'source of 7 positions is longer than .* table of 6.*on_too_long = "ignore"'):
        attention.prepare(inputs.keys, inputs.keep, inputs.values)
    attention.prepare(inputs.keys[1:2], inputs.keep[1:2])  # only its padding is too long
    ignoring = build("location", max_source_positions=6, on_too_long="ignore")
    assert (
        ignoring.prepare(inputs.keys, inputs.keep).keep.tolist()
        == (inputs.keep & mask("1111110").expand(5, 7)).tolist()
    )


@pytest.mark.parametrize("score", SAME_SIZE)
def test_scores_that_need_one_size_refuse_two(score: str) -> None:
    with pytest.raises(
        ShapeError, match=f"the {SCORES[score].__name__} score .* the query has 3 and the key 5; use another"
    ):
        build(score, query=3, key=5)


@pytest.mark.parametrize("score", [name for name in SCORES if name not in SAME_SIZE])
def test_other_scores_accept_queries_and_keys_of_two_sizes(score: str) -> None:
    build(score, query=3, key=5)


@pytest.mark.parametrize("shape", [(5, 6), (4, 7), (5, 7, 1), (5,)])
def test_a_mask_of_another_shape_than_the_keys_is_refused(shape: tuple[int, ...]) -> None:
    expected = r"keep has shape \(.*\), but a source with keys of shape \(5, 7, 11\) needs \(5, 7\)"
    with pytest.raises(ShapeError, match=expected):
        build().prepare(zeros(5, 7, 11), torch.ones(shape, dtype=torch.bool))


@pytest.mark.parametrize("shape", [(5, 6, 13), (4, 7, 13), (5, 7)])
def test_values_of_another_shape_than_the_keys_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        ShapeError, match=r"values has shape \(.*\), but a source with keys of shape \(5, 7, 11\) needs \(5, 7, any\)"
    ):
        build().prepare(zeros(5, 7, 11), make_inputs().keep, zeros(*shape))


@pytest.mark.parametrize("shape", [(5, 3, 6), (5, 2, 7), (2, 3, 7), (3, 7), (5, 3, 1, 7)])
def test_a_further_mask_of_a_wrong_shape_is_refused(shape: tuple[int, ...]) -> None:
    inputs, attention = make_inputs(), build()
    memory = attention.prepare(inputs.keys, inputs.keep)
    expected = r"allowed has shape \(.*\), but 5 sentences with 3 queries and 7 keys need \(5 or 1, 3 or 1, 7\)"
    with pytest.raises(ShapeError, match=expected):
        attention(inputs.query, memory, allowed=torch.ones(shape, dtype=torch.bool))


@pytest.mark.parametrize(("width", "count"), [(10, 3), (10, 4), (7, 2), (4, 0), (4, -1)])
def test_a_width_that_is_not_divisible_by_the_heads_is_refused(width: int, count: int) -> None:
    with pytest.raises(ShapeError, match=f"a width of {width} is not divisible by {count} heads"):
        Heads(count, width, query_size=width, key_size=width)


def test_a_width_of_a_config_that_is_not_divisible_by_the_heads_is_refused() -> None:
    with pytest.raises(ShapeError, match="a width of 10 is not divisible by 3 heads"):
        build_attention(AttentionConfig(score="dot", heads=3), query_size=10, key_size=5)


@pytest.mark.parametrize("score", SCORES)
def test_a_query_or_a_key_of_the_wrong_width_is_refused(score: str) -> None:
    attention, inputs = build(score), make_inputs(score)
    size = inputs.query.shape[-1]
    memory = attention.prepare(inputs.keys, inputs.keep)
    name = type(attention.score).__name__
    with pytest.raises(ShapeError, match=rf"query has shape \(5, 3, 1, 23\), but the {name} .*\(5, 3, any, {size}\)"):
        attention(zeros(5, 3, 23), memory)
    with pytest.raises(ShapeError, match=rf"key has shape \(5, 7, 1, 23\), but the {name} .*\(5, 7, any, 11\)"):
        attention.prepare(zeros(5, 7, 23), inputs.keep)


@pytest.mark.parametrize("shape", [(4, 3, 2), (1, 3, 2), (5, 2)])
def test_a_query_of_another_batch_size_is_refused(shape: tuple[int, ...]) -> None:
    inputs, attention = make_inputs(), build()
    memory = attention.prepare(inputs.keys, inputs.keep)
    with pytest.raises(ShapeError, match=r"query has shape \(.*\), but a memory of 5 sentences needs \(5, any, any\)"):
        attention(zeros(*shape), memory)


@pytest.mark.parametrize("part", ["query", "key", "value"])
def test_inputs_of_another_width_than_the_heads_expect_are_refused(part: str) -> None:
    attention = build("scaled-dot", query=4, key=6, value=8, heads=2)
    sizes = {"query": 4, "key": 6, "value": 8}
    actual = {**sizes, part: 5}

    def run() -> None:
        memory = attention.prepare(zeros(5, 7, actual["key"]), make_inputs().keep, zeros(5, 7, actual["value"]))
        attention(zeros(5, 3, actual["query"]), memory)

    with pytest.raises(ShapeError, match=f"a {part} has size 5, but the heads expect {sizes[part]}"):
        run()


def test_positions_of_another_shape_than_the_queries_are_refused() -> None:
    inputs, attention = make_inputs(), build(placement="local-m")
    memory = attention.prepare(inputs.keys, inputs.keep)
    with pytest.raises(
        ShapeError, match=r"positions has shape \(5, 2\), but a call with queries of shape \(5, 3, 2\) needs \(5, 3\)"
    ):
        attention(inputs.query, memory, positions=inputs.positions[:, :2])


def test_coverage_without_a_carry_is_refused() -> None:
    inputs, attention = make_inputs(), build(COVERED)
    memory = attention.prepare(inputs.keys, inputs.keep)
    with pytest.raises(ShapeError, match=r"coverage needs the carry of the step before; begin with initial_carry\(\)"):
        attention(inputs.query, memory)
    with pytest.raises(ShapeError, match=r"coverage has shape \(5, 1, 1, 7\), but this call needs \(5, 3, 1, 7\)"):
        attention(inputs.query, memory, carry=attention.initial_carry(memory))


@pytest.mark.parametrize("placement", ["hard sample", "hard argmax", "hard expectation"])
def test_hard_attention_refuses_weights_that_do_not_sum_to_one(placement: str) -> None:
    with pytest.raises(ShapeError, match=r"hard attention samples .* must sum to 1; use another normalizer"):
        Attention(Additive(2, 3, 5), SmoothedSoftmax(), Hard())
    with pytest.raises(ValidationError, match="samples from weights that sum to 1"):
        build(normalizer="smoothed-softmax", placement=placement)


def test_coverage_needs_the_additive_score() -> None:
    with pytest.raises(ValidationError, match='needs score = "additive", not "dot"'):
        AttentionConfig(score="dot", coverage=True)


@pytest.mark.parametrize("window", [0, -1])
def test_an_empty_window_is_refused(window: int) -> None:
    for build_placement in (lambda: LocalM(window), lambda: LocalP(2, window)):
        with pytest.raises(ShapeError, match=f"at least 1 position on each side, got {window}"):
            build_placement()


@pytest.mark.parametrize(
    ("setting", "table"), [("score", SCORES), ("normalizer", NORMALIZERS), ("placement", PLACEMENTS)]
)
def test_an_unknown_name_in_a_config_is_answered_by_the_known_ones(setting: str, table: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=setting) as error:
        AttentionConfig.model_validate({setting: "nothing"})
    assert error.value.errors()[0]["ctx"] == {"known": list(table)}

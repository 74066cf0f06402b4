"""What does not fit is refused in words that name both sides; the tests' shape checker is off here."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from attention.helpers import COVERED, ONE_SIZE, build, mask, scene
from heedful.attention import (
    NORMALISERS,
    PLACEMENTS,
    SCORES,
    Additive,
    Attention,
    Dot,
    Hard,
    Heads,
    LocalM,
    LocalP,
    build_attention,
)
from heedful.config import AttentionConfig
from heedful.errors import ShapeError

pytestmark = pytest.mark.usefixtures("as_users_run")


def zeros(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.float64)


def test_a_source_longer_than_the_table_of_a_location_score() -> None:
    given = scene("location")
    attention = build("location", table=6)
    with pytest.raises(
        ShapeError, match=r'source of 7 positions is longer than .* table of 6.*longer = "ignore"'
    ):
        attention.prepare(given.keys, given.keep, given.values)
    attention.prepare(given.keys[1:2], given.keep[1:2])  # only its padding is too long
    ignoring = build("location", table=6, longer="ignore")
    assert (
        ignoring.prepare(given.keys, given.keep).keep.tolist()
        == (given.keep & mask("1111110").expand(5, 7)).tolist()
    )


@pytest.mark.parametrize("score", ONE_SIZE)
def test_queries_and_keys_of_two_sizes_where_one_is_needed(score: str) -> None:
    with pytest.raises(
        ShapeError, match=f"score {score} .* the query has 3 and the key 5; .* takes any two sizes"
    ):
        build(score, query=3, key=5)


@pytest.mark.parametrize("score", [name for name in SCORES if name not in ONE_SIZE])
def test_queries_and_keys_of_two_sizes_where_they_are_welcome(score: str) -> None:
    build(score, query=3, key=5)


@pytest.mark.parametrize("shape", [(5, 6), (4, 7), (5, 7, 1), (5,)])
def test_a_mask_that_does_not_fit_the_keys(shape: tuple[int, ...]) -> None:
    wanted = r"keep has shape \(.*\), but keys of shape \(5, 7, 11\) asks for \(5, 7\)"
    with pytest.raises(ShapeError, match=wanted):
        build().prepare(zeros(5, 7, 11), torch.ones(shape, dtype=torch.bool))


@pytest.mark.parametrize("shape", [(5, 6, 13), (4, 7, 13), (5, 7)])
def test_values_that_do_not_fit_the_keys(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        ShapeError, match=r"values has shape \(.*\), but keys of shape \(5, 7, 11\) asks for \(5, 7, any\)"
    ):
        build().prepare(zeros(5, 7, 11), scene().keep, zeros(*shape))


@pytest.mark.parametrize("shape", [(5, 3, 6), (5, 2, 7), (2, 3, 7), (3, 7), (5, 3, 1, 7)])
def test_a_further_mask_that_does_not_fit(shape: tuple[int, ...]) -> None:
    given, attention = scene(), build()
    memory = attention.prepare(given.keys, given.keep)
    wanted = (
        r"allow has shape \(.*\), but 5 sentences with 3 queries and 7 keys ask for \(5 or 1, 3 or 1, 7\)"
    )
    with pytest.raises(ShapeError, match=wanted):
        attention.look(given.query, memory, allow=torch.ones(shape, dtype=torch.bool))


@pytest.mark.parametrize(("width", "count"), [(10, 3), (10, 4), (7, 2), (4, 0), (4, -1)])
def test_heads_that_do_not_divide_the_width(width: int, count: int) -> None:
    with pytest.raises(ShapeError, match=f"a width of {width} does not divide into {count} heads"):
        Heads(count, width, query=width, key=width)


def test_the_same_from_a_config() -> None:
    with pytest.raises(ShapeError, match="a width of 10 does not divide into 3 heads"):
        build_attention(AttentionConfig(score="dot", heads=3), query=10, key=5)


@pytest.mark.parametrize("score", SCORES)
def test_a_query_or_a_key_of_the_wrong_width(score: str) -> None:
    attention, given = build(score), scene(score)
    size = given.query.shape[-1]
    memory = attention.prepare(given.keys, given.keep)
    name = type(attention.score).__name__
    with pytest.raises(
        ShapeError, match=rf"query has shape \(5, 3, 1, 23\), but the {name} .*\(5, 3, any, {size}\)"
    ):
        attention.look(zeros(5, 3, 23), memory)
    with pytest.raises(
        ShapeError, match=rf"key has shape \(5, 7, 1, 23\), but the {name} .*\(5, 7, any, 11\)"
    ):
        attention.prepare(zeros(5, 7, 23), given.keep)


@pytest.mark.parametrize("shape", [(4, 3, 2), (1, 3, 2), (5, 2)])
def test_a_query_of_another_batch(shape: tuple[int, ...]) -> None:
    given, attention = scene(), build()
    memory = attention.prepare(given.keys, given.keep)
    with pytest.raises(
        ShapeError, match=r"query has shape \(.*\), but a memory of 5 sentences asks for \(5, any, any\)"
    ):
        attention.look(zeros(*shape), memory)


@pytest.mark.parametrize("part", ["query", "key", "value"])
def test_heads_made_for_another_width(part: str) -> None:
    attention = build("scaled-dot", query=4, key=6, value=8, heads=2)
    sizes = {"query": 4, "key": 6, "value": 8}
    found = {**sizes, part: 5}

    def look() -> None:
        memory = attention.prepare(zeros(5, 7, found["key"]), scene().keep, zeros(5, 7, found["value"]))
        attention.look(zeros(5, 3, found["query"]), memory)

    with pytest.raises(ShapeError, match=f"a {part} has size 5, but these heads were made for {sizes[part]}"):
        look()


def test_target_positions_that_do_not_fit_the_queries() -> None:
    given, attention = scene(), build(placement="local-m")
    memory = attention.prepare(given.keys, given.keep)
    with pytest.raises(
        ShapeError, match=r"at has shape \(5, 2\), but queries of shape \(5, 3, 2\) asks for \(5, 3\)"
    ):
        attention.look(given.query, memory, at=given.at[:, :2])


def test_coverage_that_was_not_carried() -> None:
    given, attention = scene(), build(COVERED)
    memory = attention.prepare(given.keys, given.keep)
    with pytest.raises(ShapeError, match=r"coverage carries it from look to look: begin with start\(\)"):
        attention.look(given.query, memory)
    with pytest.raises(
        ShapeError, match=r"coverage has shape \(5, 1, 1, 7\), but this look asks for \(5, 3, 1, 7\)"
    ):
        attention.look(given.query, memory, carry=attention.start(memory))


@pytest.mark.parametrize("placement", ["hard sample", "hard argmax", "hard expectation"])
def test_hard_attention_over_weights_that_do_not_sum_to_one(placement: str) -> None:
    with pytest.raises(ShapeError, match=r"hard attention draws .* must sum to 1; take softmax"):
        Attention(Additive(2, 3, 5), "smoothed-softmax", Hard())
    with pytest.raises(ValidationError, match="smoothed-softmax cannot serve"):
        build(normaliser="smoothed-softmax", placement=placement)


def test_coverage_of_another_score() -> None:
    with pytest.raises(ValidationError, match='needs score = "additive", not "dot"'):
        AttentionConfig(score="dot", coverage=True)


@pytest.mark.parametrize("window", [0, -1])
def test_a_window_that_reaches_nothing(window: int) -> None:
    for make in (lambda: LocalM(window), lambda: LocalP(2, window)):
        with pytest.raises(ShapeError, match=f"at least 1 position to each side, not {window}"):
            make()


def test_a_normaliser_nobody_knows() -> None:
    known = ", ".join(NORMALISERS)
    with pytest.raises(
        ShapeError, match=f'no normaliser "sparsmax"; did you mean "sparsemax"\\? known: {known}'
    ):
        Attention(Dot(2, 2), "sparsmax")


@pytest.mark.parametrize(
    ("setting", "table"), [("score", SCORES), ("normaliser", NORMALISERS), ("placement", PLACEMENTS)]
)
def test_a_name_nobody_knows_in_a_config(setting: str, table: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=f"{setting}(.|\n)*'{next(iter(table))}'"):
        AttentionConfig.model_validate({setting: "nothing"})

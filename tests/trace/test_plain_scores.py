"""The plain scores against numbers derived by hand.

Logarithms make every nonlinearity rational: `tanh(ln a)` is `(a^2 - 1) / (a^2 + 1)`, that is 3/5 for 2, 4/5 for 3 and
35/37 for 6.
"""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from heedful import registry
from heedful.trace.plain_scores import score_keys

Matrix = list[list[float]]
LN2, LN3 = math.log(2.0), math.log(3.0)


def scores(name: str, query: list[float], keys: Matrix, coverage: list[float] | None = None, **weights: Any) -> Any:
    """Return the scores of the keys; `query_weight=W` is the parameter "query.weight"."""
    parameters = {key.replace("_weight", ".weight").replace("_bias", ".bias"): value for key, value in weights.items()}
    return score_keys(name, query, keys, parameters.get, coverage or [0.0] * len(keys))


def matrix(rng: random.Random, rows: int, columns: int) -> Matrix:
    return [[rng.gauss(0.0, 1.0) for _ in range(columns)] for _ in range(rows)]


# W_q q is [ln 2, ln 3]; v weighs the two hidden units by 10 and 5
ADDITIVE_Q = [1.0, 1.0]
ADDITIVE: dict[str, Any] = {
    "query_weight": [[LN2, 0.0], [0.0, LN3]],
    "key_weight": [[-LN2, LN3, 0.0], [0.0, -LN3, LN2]],
    "v": [10.0, 5.0],
}


def test_additive() -> None:
    keys = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    # inside tanh: [ln 2, ln 3], [0, ln 3], [ln 6, 0], [ln 2, ln 6]
    expected = [6.0 + 4.0, 0.0 + 4.0, 350.0 / 37.0 + 0.0, 6.0 + 175.0 / 37.0]
    assert scores("additive", ADDITIVE_Q, keys, **ADDITIVE) == pytest.approx(expected, abs=1e-12)


def test_additive_with_a_bias() -> None:
    # inside tanh: [ln 2 - ln 2, ln 3 + ln 2] = [0, ln 6]
    biased = scores("additive", ADDITIVE_Q, [[0.0, 0.0, 0.0]], **ADDITIVE, key_bias=[-LN2, LN2])
    assert biased == pytest.approx([175.0 / 37.0], abs=1e-12)


def test_additive_with_coverage() -> None:
    keys = [[0.0, 0.0, 0.0]] * 3
    covered = scores("additive", ADDITIVE_Q, keys, [0.0, 1.0, 2.0], **ADDITIVE, w_c=[-LN2, LN2])
    # inside tanh: [ln 2, ln 3], [0, ln 6], [-ln 2, ln 12], and tanh(ln 12) = 143/145
    assert covered == pytest.approx([10.0, 175.0 / 37.0, -6.0 + 143.0 / 29.0], abs=1e-12)


def test_additive_before_anything_is_covered() -> None:
    rng = random.Random(0)
    q, keys, v, w_c = matrix(rng, 1, 3)[0], matrix(rng, 5, 2), matrix(rng, 1, 7)[0], matrix(rng, 1, 7)[0]
    weights: dict[str, Any] = {"query_weight": matrix(rng, 7, 3), "key_weight": matrix(rng, 7, 2), "v": v}
    assert scores("additive", q, keys, [0.0] * 5, **weights, w_c=w_c) == scores("additive", q, keys, **weights)


def test_concat() -> None:
    # inside tanh: ln 2, then ln 2 + ln 3
    actual = scores("concat", [1.0], [[0.0], [1.0]], both_weight=[[LN2, LN3]], v=[37.0])
    assert actual == pytest.approx([22.2, 35.0], abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_concat_is_additive_with_the_matrix_split(seed: int) -> None:
    rng = random.Random(seed)
    q, keys, W, v = matrix(rng, 1, 3)[0], matrix(rng, 5, 2), matrix(rng, 7, 5), matrix(rng, 1, 7)[0]
    W_q, W_k = [row[:3] for row in W], [row[3:] for row in W]
    additive = scores("additive", q, keys, query_weight=W_q, key_weight=W_k, v=v)
    assert scores("concat", q, keys, both_weight=W, v=v) == pytest.approx(additive, abs=1e-12)


def test_dot() -> None:
    assert scores("dot", [1.0, 2.0], [[3.0, 4.0], [-2.0, 1.0], [0.5, 0.0]]) == [11.0, 0.0, 0.5]


def test_scaled_dot() -> None:
    assert scores("scaled-dot", [1.0, 2.0, 3.0, 4.0], [[1.0] * 4, [4.0, 0.0, 0.0, -2.0]]) == [5.0, -2.0]


def test_general() -> None:
    W = [[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]]  # W k is [3, 4], then [4, 1]
    assert scores("general", [1.0, 2.0], [[1.0, 1.0, 1.0], [2.0, 0.0, 1.0]], key_weight=W) == [11.0, 6.0]


def test_general_does_not_transpose_the_matrix() -> None:
    assert scores("general", [1.0, 0.0], [[0.0, 1.0]], key_weight=[[0.0, 5.0], [7.0, 0.0]]) == [5.0]


def test_location_scores_positions_beyond_its_table_with_0() -> None:
    W = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert scores("location", [1.0, 10.0], [[0.0]] * 3, rows_weight=W) == [21.0, 43.0, 65.0]
    assert scores("location", [1.0, 10.0], [[0.0]] * 2, rows_weight=W) == [21.0, 43.0]
    assert scores("location", [1.0, 10.0], [[0.0]] * 4, rows_weight=W) == [21.0, 43.0, 65.0, 0.0]


def test_prod_relu() -> None:
    # q * k = [3, -2]; W of it [1, -5, -4]; with b [1.5, 1, -4]; cut off [1.5, 1, 0]; 2*1.5 + 3*1 = 6
    # q * k = [0, 0]; b alone [0.5, 6, 0]; 2*0.5 + 3*6 = 19
    W, b, h = [[1.0, 1.0], [-1.0, 1.0], [0.0, 2.0]], [0.5, 6.0, 0.0], [2.0, 3.0, 100.0]
    actual = scores("prod-relu", [1.0, 2.0], [[3.0, -1.0], [0.0, 0.0]], product_weight=W, product_bias=b, h=h)
    assert actual == [6.0, 19.0]


def test_concat_relu() -> None:
    # [1; 2]: W gives [3, 0], with b [2, 0], 5*2 = 10; [1; -3]: W gives [-2, 5], with b [-3, 5], 7*5 = 35
    W, b, h = [[1.0, 1.0], [2.0, -1.0]], [-1.0, 0.0], [5.0, 7.0]
    assert scores("concat-relu", [1.0], [[2.0], [-3.0]], both_weight=W, both_bias=b, h=h) == [10.0, 35.0]


def test_sizes_must_match() -> None:
    with pytest.raises(ValueError, match="vectors of 2 and 3 numbers have no dot product"):
        scores("dot", [1.0, 2.0], [[1.0, 2.0, 3.0]])


def test_an_unknown_score_has_no_plain_form() -> None:
    assert "gaussian" not in registry.built_in_names("score")
    with pytest.raises(ValueError, match="no plain score for gaussian"):
        scores("gaussian", [1.0], [[1.0]])

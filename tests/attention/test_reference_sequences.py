"""The reference against numbers derived by hand: multi-head attention, self-attention, the LSTMN.

The derivations use logarithms as in `test_reference.py`.
"""

import math
import random
from collections.abc import Sequence

import pytest

from attention.reference import (
    Matrix,
    Vector,
    lstmn,
    lstmn_step,
    multi_head,
    self_attention,
)

T, F = True, False
LN2, LN3 = math.log(2.0), math.log(3.0)


def close(actual: float | Sequence[float], expected: float | Sequence[float], within: float = 1e-12) -> bool:
    """Equal up to rounding; a list must also have the expected length."""
    return bool(actual == pytest.approx(expected, rel=within, abs=within))


def matrix(rng: random.Random, rows: int, columns: int) -> Matrix:
    return [[rng.gauss(0.0, 1.0) for _ in range(columns)] for _ in range(rows)]


# --- several heads, self-attention ----------------------------------------------------------------

# Two heads of width 4 out of inputs of width 1. The query is (1,1,1,1) for head 0, (2,2,2,2) for head 1;
# a key x is (x/2, x/2, x/2, x/2) and (x/2, 0, 0, 0): scores x and x/2 after the division by sqrt 4.
MH_WQ: Matrix = [[0.0]] * 4 + [[1.0]] * 4
MH_BQ = [1.0] * 8
MH_WK: Matrix = [[0.5]] * 5 + [[0.0]] * 3
# values of width 2 become two heads of width 2
MH_WV: Matrix = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]]
MH_BV = [0.0, 0.0, 0.0, 1.0]
MH_WO: Matrix = [[5.0, 5.0, 0.0, 0.0], [0.0, 0.0, 1.0, 3.0]]
MH_BO = [1.0, -1.0]
MH_KEYS: Matrix = [[0.0], [2.0 * LN2], [9.0]]
MH_VALUES: Matrix = [[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]


def two_heads(keep: list[bool], b_k: Vector | None) -> tuple[Vector, Matrix]:
    q = [1.0]
    return multi_head(q, MH_KEYS, MH_VALUES, keep, 2, MH_WQ, MH_BQ, MH_WK, b_k, MH_WV, MH_BV, MH_WO, MH_BO)


def test_multi_head() -> None:
    output, weights = two_heads([T, T, F], None)
    # head 0: softmax(0, ln 4); head 1: softmax(0, ln 2)
    assert close(weights[0], [1 / 5, 4 / 5, 0.0])
    assert close(weights[1], [1 / 3, 2 / 3, 0.0])
    assert len(weights) == 2
    # head 0 reads [1, 0] and [0, 1]: [1/5, 4/5]; head 1 reads [1, 2] and [1, 0]: [1, 2/3]
    assert close(output, [1.0 + 4.0 + 1.0, 1.0 + 2.0 - 1.0])


def test_multi_head_key_bias_cannot_be_seen() -> None:
    """The same vector added to every key moves all scores alike, and softmax does not notice."""
    plain, shifted = two_heads([T, T, T], None), two_heads([T, T, T], [0.1 * i for i in range(8)])
    assert close(shifted[0], plain[0])
    assert close(shifted[1][0], plain[1][0])
    assert close(shifted[1][1], plain[1][1])


def test_multi_head_reading_nothing() -> None:
    output, weights = two_heads([F, F, F], None)
    assert output == [0.0] * len(MH_BO)
    assert weights == [[0.0] * 3] * 2


def test_multi_head_must_split_evenly() -> None:
    one = [[1.0]] * 3
    with pytest.raises(ValueError, match="3 does not split into 2 heads"):
        multi_head([1.0], [[1.0]], [[1.0]], [T], 2, one, None, one, None, one, None, one, None)


def test_self_attention() -> None:
    one, root = [[1.0]], math.sqrt(LN3)  # scores of the second word: 0 and ln 3
    xs = [[0.0], [root], [5.0]]
    outputs, weights = self_attention(xs, [T, T, F], 1, one, None, one, None, one, None, one, None, True)
    assert weights[0] == [[1.0, 0.0, 0.0]]
    assert close(weights[1][0], [1 / 4, 3 / 4, 0.0])
    assert weights[2][0][2] == 0.0  # a padded word asks too, but nobody reads it
    assert close(outputs[0], [0.0])
    assert close(outputs[1], [0.75 * root])

    outputs, weights = self_attention(xs, [T, T, F], 1, one, None, one, None, one, None, one, None, False)
    assert close(weights[0][0], [1 / 2, 1 / 2, 0.0])  # the first word's query is 0
    assert close(outputs[0], [0.5 * root])
    assert close(weights[1][0], [1 / 4, 3 / 4, 0.0])


def test_causal_self_attention_does_not_see_ahead() -> None:
    rng = random.Random(1)
    W_q, W_k, W_v, W_o = (matrix(rng, 6, 6) for _ in range(4))
    b_q, b_k, b_v, b_o = matrix(rng, 4, 6)
    xs = matrix(rng, 5, 6)
    later = [*xs[:3], *matrix(rng, 2, 6)]
    first, _ = self_attention(xs, [T] * 5, 3, W_q, b_q, W_k, b_k, W_v, b_v, W_o, b_o, True)
    second, _ = self_attention(later, [T] * 5, 3, W_q, b_q, W_k, b_k, W_v, b_v, W_o, b_o, True)
    assert first[:3] == second[:3]
    assert first[3:] != second[3:]


# --- LSTMN ----------------------------------------------------------------------------------------

# n = 2, x = [1]; rows of W are i0 i1 f0 f1 o0 o1 g0 g1, columns h~0 h~1 x
TAPE_W: Matrix = [
    [0.0, 0.0, LN3],
    [3.0 * LN2, 0.0, 0.0],
    [0.0, 0.0, 0.0],
    [0.0, 1.5 * LN3, 0.0],
    [0.0, 0.0, LN2],
    [0.0, 0.0, 0.0],
    [0.0, 0.0, LN2],
    [0.0, 0.0, LN3],
]
# one hidden unit: W_h h_i is ln 2, ln 3; W_x x is ln 2; W_s h~ is -ln 2
TAPE_WH: Matrix = [[LN2, LN3]]
TAPE_WX: Matrix = [[LN2]]
TAPE_WS: Matrix = [[-LN2, 0.0]]
TAPE_V = [5.0 * LN2]
TAPE_H: Matrix = [[1.0, 0.0], [0.0, 1.0]]
TAPE_M: Matrix = [[2.0, 0.0], [0.0, 4.0]]


@pytest.mark.parametrize("zero_slot", [False, True])
def test_lstmn_first_step(zero_slot: bool) -> None:
    bias = [0.0, LN2, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    step = lstmn_step([1.0], [], [], [0.0, 0.0], TAPE_WH, TAPE_WX, TAPE_WS, TAPE_V, TAPE_W, bias, zero_slot)
    # h~ = m~ = 0: i = [3/4, 2/3], o = [2/3, 1/2], g = [3/5, 4/5], so m = i*g = [9/20, 8/15]
    assert close(step.m, [9 / 20, 8 / 15])
    assert close(step.h, [2 / 3 * math.tanh(9 / 20), 1 / 2 * math.tanh(8 / 15)])
    assert step.summary == [0.0, 0.0]
    assert step.m_summary == [0.0, 0.0]
    assert step.weights == []
    assert step.slot_weight == (1.0 if zero_slot else 0.0)


def test_lstmn_step_reads_the_tape() -> None:
    h, m, summary, m_summary, weights, slot_weight = lstmn_step(
        [1.0], TAPE_H, TAPE_M, [1.0, 7.0], TAPE_WH, TAPE_WX, TAPE_WS, TAPE_V, TAPE_W, None, False
    )
    # scores 5 ln 2 * 3/5 = ln 8 and 5 ln 2 * 4/5 = ln 16
    assert close(weights, [1 / 3, 2 / 3])
    assert slot_weight == 0.0
    assert close(summary, [1 / 3, 2 / 3])
    assert close(m_summary, [2 / 3, 8 / 3])
    # i = [3/4, 2/3], f = [1/2, 3/4], o = [2/3, 1/2], g = [3/5, 4/5]
    assert close(m, [1 / 3 + 9 / 20, 2 + 8 / 15])
    assert close(h, [2 / 3 * math.tanh(47 / 60), 1 / 2 * math.tanh(38 / 15)])


def test_lstmn_step_with_the_zero_slot() -> None:
    step = lstmn_step([1.0], TAPE_H, TAPE_M, [1.0, 7.0], TAPE_WH, TAPE_WX, TAPE_WS, TAPE_V, TAPE_W, None, True)
    # the slot's score is 5 ln 2 * tanh(ln 2 - ln 2) = 0, so 1 : 8 : 16
    assert close(step.slot_weight, 1 / 25)
    assert close(step.weights, [8 / 25, 16 / 25])
    assert close(step.summary, [8 / 25, 16 / 25])
    assert close(step.m_summary, [16 / 25, 64 / 25])


def test_lstmn_step_without_the_summary_term() -> None:
    step = lstmn_step([1.0], TAPE_H, TAPE_M, [1.0, 7.0], TAPE_WH, TAPE_WX, None, TAPE_V, TAPE_W, None, False)
    # inside tanh ln 4 and ln 6: 15/17 and 35/37
    one, two = 2 ** (75 / 17), 2 ** (175 / 37)
    assert close(step.weights, [one / (one + two), two / (one + two)])


# n = 1 and x = 1 always: i = 3/4, f = o = 1/2, g = 3/5, so m = m~/2 + 9/20 and h = tanh(m)/2
SHORT_W: Matrix = [[0.0, LN3], [0.0, 0.0], [0.0, 0.0], [0.0, LN2]]


def test_lstmn_sequence() -> None:
    steps = lstmn([[1.0]] * 3, [[1.0]], [[1.0]], None, [0.0], SHORT_W, None, False)  # v = 0: even weights
    assert [step.weights for step in steps] == [[], [1.0], [0.5, 0.5]]
    # m~: 0, 9/20, (9/20 + 27/40) / 2 = 9/16
    assert close([step.m[0] for step in steps], [9 / 20, 27 / 40, 117 / 160])
    assert close([step.h[0] for step in steps], [math.tanh(m) / 2 for m in (9 / 20, 27 / 40, 117 / 160)])
    assert close([step.m_summary[0] for step in steps], [0.0, 9 / 20, 9 / 16])
    assert steps[1].summary == steps[0].h


def test_lstmn_sequence_with_the_zero_slot() -> None:
    steps = lstmn([[1.0]] * 3, [[1.0]], [[1.0]], None, [0.0], SHORT_W, None, True)
    assert close([step.slot_weight for step in steps], [1.0, 1 / 2, 1 / 3])
    assert close(steps[2].weights, [1 / 3, 1 / 3])
    # m~: 0, 9/40, (0 + 9/20 + 9/16) / 3 = 27/80
    assert close([step.m[0] for step in steps], [9 / 20, 9 / 16, 99 / 160])


def test_lstmn_sequence_hands_the_summary_on() -> None:
    """Step 3 is told h~_2, which is h_1; not h_2."""
    steps = lstmn([[1.0]] * 3, [[1.0]], [[0.0]], [[1.0]], [1.0], SHORT_W, None, False)
    h_1, h_2 = math.tanh(9 / 20) / 2, math.tanh(27 / 40) / 2
    one, two = math.exp(math.tanh(h_1 + h_1)), math.exp(math.tanh(h_2 + h_1))
    assert close(steps[2].weights, [one / (one + two), two / (one + two)])


def test_lstmn_sequence_with_both_the_summary_and_the_zero_slot() -> None:
    """The slot is scored with the summary too: h~_1 is 0, so step 2 weighs it exp(tanh 0) = 1."""
    steps = lstmn([[1.0]] * 3, [[1.0]], [[0.0]], [[1.0]], [1.0], SHORT_W, None, True)
    h_1 = math.tanh(9 / 20) / 2
    first = math.exp(math.tanh(h_1))
    assert close(steps[1].slot_weight, 1 / (1 + first))
    assert close(steps[1].weights, [first / (1 + first)])
    h_2, told = steps[1].h[0], h_1 * first / (1 + first)  # told: h~_2
    slot, one, two = (math.exp(math.tanh(h + told)) for h in (0.0, h_1, h_2))
    assert close(steps[2].slot_weight, slot / (slot + one + two))
    assert close(steps[2].weights, [one / (slot + one + two), two / (slot + one + two)])

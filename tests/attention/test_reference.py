"""The reference against numbers derived by hand: normalizers and placements.

Hand derivations lean on logarithms, which make every nonlinearity rational: `tanh(ln a)` is
`(a^2 - 1) / (a^2 + 1)` (3/5 for 2, 4/5 for 3, 35/37 for 6), `sigmoid(ln a)` is `a / (1 + a)`, and the
softmax of logarithms is their arguments in proportion.
"""

import math
import random
from collections.abc import Sequence
from functools import partial

import pytest

from attention.reference import (
    Matrix,
    Normalizer,
    Vector,
    affine,
    context,
    coverage_loss,
    coverage_update,
    entmax15,
    entropy,
    global_keep,
    hard_argmax,
    hard_sample,
    length,
    local_m_keep,
    local_p,
    log_probability,
    scaled_dot,
    sigmoid,
    smoothed_softmax,
    softmax,
    sparsemax,
    times,
    uniform,
)

T, F = True, False
LN2, LN3 = math.log(2.0), math.log(3.0)
TO_ONE: list[Normalizer] = [softmax, sparsemax, entmax15]
SEEDS = range(20)


def close(actual: float | Sequence[float], expected: float | Sequence[float], within: float = 1e-12) -> bool:
    """Equal up to rounding; a list must also have the expected length."""
    return bool(actual == pytest.approx(expected, rel=within, abs=within))


def some_scores(seed: int) -> tuple[Vector, list[bool]]:
    """Seven random scores, of which at least the last is readable."""
    rng = random.Random(seed)
    return [rng.gauss(0.0, 2.0) for _ in range(7)], [rng.random() < 0.6 for _ in range(6)] + [True]


def matrix(rng: random.Random, rows: int, columns: int) -> Matrix:
    return [[rng.gauss(0.0, 1.0) for _ in range(columns)] for _ in range(rows)]


# --- arithmetic -----------------------------------------------------------------------------------


def test_arithmetic() -> None:
    assert times([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 10.0]) == [21.0, 43.0, 65.0]
    assert affine([[1.0, 2.0]], [1.0, 10.0], [0.5]) == [21.5]
    assert affine([[1.0, 2.0]], [1.0, 10.0], None) == [21.0]
    assert sigmoid(0.0) == 0.5
    assert close(sigmoid(LN3), 0.75)
    assert [length([]), length([F, F]), length([T, F, T, F])] == [0, 0, 3]


def test_sizes_must_fit() -> None:
    with pytest.raises(ValueError, match="zip"):
        scaled_dot([1.0, 2.0], [[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="zip"):
        softmax([1.0, 2.0], [T])
    with pytest.raises(ValueError, match="zip"):
        context([1.0, 2.0], [[1.0]])


# --- normalizers ----------------------------------------------------------------------------------


def test_softmax() -> None:
    scores = [0.0, LN2, LN3]
    assert close(softmax(scores, [T, T, T]), [1 / 6, 1 / 3, 1 / 2])
    assert close(softmax(scores, [T, F, T]), [1 / 4, 0.0, 3 / 4])
    assert softmax([5.0, -7.0], [F, T]) == [0.0, 1.0]


def test_softmax_of_huge_scores() -> None:
    assert softmax([5000.0, 5000.0, -5000.0], [T, T, T]) == [0.5, 0.5, 0.0]


def test_smoothed_softmax() -> None:
    scores, keep = [0.0, 50.0, LN3], [T, F, T]  # exp: 1 and 3, together 4
    assert close(smoothed_softmax(scores, keep, 0.5), [1 / 2, 0.0, 3 / 2])
    assert close(smoothed_softmax(scores, keep, 0.0), [1.0, 0.0, 3.0])
    assert close(smoothed_softmax(scores, keep, 1.0), [1 / 4, 0.0, 3 / 4])


@pytest.mark.parametrize("seed", SEEDS)
def test_smoothed_softmax_mass(seed: int) -> None:
    scores, keep = some_scores(seed)
    assert close(smoothed_softmax(scores, keep, 1.0), softmax(scores, keep))
    total = sum(math.exp(e) for e, kept in zip(scores, keep, strict=True) if kept)
    for beta in (0.0, 0.3, 0.5, 0.9):
        assert close(sum(smoothed_softmax(scores, keep, beta)), total ** (1.0 - beta))


def test_sparsemax() -> None:
    # [1, .5, -1]: k = 2 passes (2 > 1.5), k = 3 does not (-2 < .5); tau = .5 / 2
    assert close(sparsemax([0.5, -1.0, 1.0], [T, T, T]), [0.25, 0.0, 0.75])
    # [.5, .5, .2]: all pass (1.6 > 1.2); tau = .2 / 3
    assert close(sparsemax([0.5, 0.2, 0.5], [T, T, T]), [13 / 30, 4 / 30, 13 / 30])
    assert close(sparsemax([9.0, 0.5, -1.0, 1.0], [F, T, T, T]), [0.0, 0.25, 0.0, 0.75])
    assert sparsemax([0.0, 2.0], [T, T]) == [0.0, 1.0]
    assert sparsemax([1.0, 0.0], [T, T]) == [1.0, 0.0]  # exactly on the edge of the support
    assert close(sparsemax([0.1] * 3, [T] * 3), [1 / 3] * 3)


def test_entmax15() -> None:
    # roots of the weights r_i = e_i / 2 - tau: score gaps are twice the gaps of r, and sum r^2 = 1
    assert close(entmax15([0.4, 0.0], [T, T]), [16 / 25, 9 / 25])  # 4/5, 3/5
    assert close(entmax15([2 / 3, 0.0, 2 / 3], [T, T, T]), [4 / 9, 1 / 9, 4 / 9])  # 2/3, 1/3, 2/3
    assert close(entmax15([2 / 7, 8 / 7, 0.0], [T, T, T]), [9 / 49, 36 / 49, 4 / 49])  # 3/7, 6/7, 2/7
    assert close(entmax15([10.4, 10.0, 99.0], [T, T, F]), [16 / 25, 9 / 25, 0.0])
    assert close(entmax15([1.0] * 5, [T] * 5), [1 / 5] * 5)


def test_entmax15_drops_far_scores() -> None:
    # with 4/5 and 3/5 in the support tau is -3/5 where e = 0, so a score of -6/5 or less gets nothing
    assert close(entmax15([0.4, 0.0, -1.2], [T, T, T]), [16 / 25, 9 / 25, 0.0])
    assert entmax15([0.4, 0.0, -1.3], [T, T, T])[2] == 0.0
    assert entmax15([0.4, 0.0, -1.1], [T, T, T])[2] > 0.0
    assert close(entmax15([2.0, 0.0], [T, T]), [1.0, 0.0])
    assert entmax15([3.0, 0.0], [T, T]) == [1.0, 0.0]


@pytest.mark.parametrize("seed", SEEDS)
def test_sparse_weights_come_from_one_threshold(seed: int) -> None:
    """The definition itself: one tau on the support, and nothing outside it rises above tau."""
    scores, keep = some_scores(seed)
    for halve, root, weights in (
        (1.0, 1.0, sparsemax(scores, keep)),
        (2.0, 0.5, entmax15(scores, keep)),
    ):
        taus = [e / halve - a**root for e, a in zip(scores, weights, strict=True) if a > 0.0]
        assert close(taus, [taus[0]] * len(taus))
        for e, a, kept in zip(scores, weights, keep, strict=True):
            assert a > 0.0 or not kept or e / halve <= taus[0] + 1e-12


@pytest.mark.parametrize("normalizer", TO_ONE)
@pytest.mark.parametrize("seed", SEEDS)
def test_normalizers_sum_to_one(normalizer: Normalizer, seed: int) -> None:
    scores, keep = some_scores(seed)
    weights = normalizer(scores, keep)
    assert close(sum(weights), 1.0)
    assert min(weights) >= 0.0
    assert close(normalizer([e + 100.0 for e in scores], keep), weights)
    order = sorted(range(7), key=lambda i: weights[i] if keep[i] else -1.0)
    assert order[-1] == max((i for i in range(7) if keep[i]), key=lambda i: scores[i])


@pytest.mark.parametrize("normalizer", [*TO_ONE, partial(smoothed_softmax, beta=0.5)])
def test_normalizers_never_read_what_is_not_kept(normalizer: Normalizer) -> None:
    assert normalizer([3.0, 1.0, 2.0], [F, F, F]) == [0.0, 0.0, 0.0]
    assert normalizer([], []) == []
    without = normalizer([0.3, -0.2], [T, T])
    for junk in (math.nan, math.inf, -math.inf, 1e6):
        assert normalizer([junk, 0.3, junk, -0.2], [F, T, F, T]) == [0.0, without[0], 0.0, without[1]]


# --- placement ------------------------------------------------------------------------------------


def test_global() -> None:
    assert global_keep([T, F, T]) == [T, F, T]


def test_local_m() -> None:
    keep = [T, T, T, T, F]
    assert local_m_keep(0, keep, 1) == [T, T, F, F, F]
    assert local_m_keep(2, keep, 1) == [F, T, T, T, F]
    assert local_m_keep(9, keep, 1) == [F, F, T, T, F]  # clamped to the last word
    assert local_m_keep(2, keep, 0) == [F, F, T, F, F]
    assert local_m_keep(2, [T, T, F, T, F], 1) == [F, T, F, T, F]
    assert local_m_keep(0, [F, F, F], 1) == [F, F, F]


# T = 5 and sigmoid(ln 5/3) = 5/8, so the center is 4 * 5/8 = 2.5: tanh(W q) is tanh(ln 2) = 3/5
LOCAL_Q, LOCAL_W, LOCAL_V = [1.0, 1.0], [[0.0, LN2]], [math.log(5 / 3) / 0.6]
LOCAL_SCORES = [7.0, 0.0, LN2, LN3, 7.0, 7.0]


def test_local_p() -> None:
    keep = [T, T, T, T, T, F]
    weights, center = local_p(LOCAL_Q, LOCAL_SCORES, keep, 1, LOCAL_W, LOCAL_V, softmax)
    assert close(center, 2.5)
    # D = 1: positions 1, 2, 3; 2 (D/2)^2 = 1/2; squared distances 2.25, 0.25, 0.25
    far, near = math.exp(-4.5), math.exp(-0.5)
    assert close(weights, [0.0, far / 6, near / 3, near / 2, 0.0, 0.0])
    assert sum(weights) < 1.0


def test_local_p_renormalized() -> None:
    keep = [T, T, T, T, T, F]
    weights, center = local_p(LOCAL_Q, LOCAL_SCORES, keep, 1, LOCAL_W, LOCAL_V, softmax, renormalize=True)
    assert close(center, 2.5)
    # times 6 e^0.5 the weights are e^-4, 2, 3
    far = math.exp(-4.0)
    assert close(weights, [0.0, far / (far + 5), 2 / (far + 5), 3 / (far + 5), 0.0, 0.0])


def test_local_p_with_a_wide_window_a_gap_and_another_normalizer() -> None:
    # D = 4: 2 (D/2)^2 = 8; the kept 0, 1, 3, 4 have squared distances 6.25, 2.25, 0.25, 2.25
    keep = [T, T, F, T, T, F]
    weights, center = local_p(LOCAL_Q, [0.0] * 6, keep, 4, LOCAL_W, LOCAL_V, sparsemax)
    assert close(center, 2.5)
    decay = [math.exp(-d / 8) for d in (6.25, 2.25, 0.25, 2.25)]
    assert close(weights, [decay[0] / 4, decay[1] / 4, 0.0, decay[2] / 4, decay[3] / 4, 0.0])


def test_local_p_of_one_word_and_of_none() -> None:
    assert local_p(LOCAL_Q, [3.0, 5.0], [T, F], 2, LOCAL_W, LOCAL_V, softmax) == ([1.0, 0.0], 0.0)
    for again in (False, True):
        nothing = local_p(LOCAL_Q, [3.0, 5.0], [F, F], 2, LOCAL_W, LOCAL_V, softmax, again)
        assert nothing == ([0.0, 0.0], 0.0)


def test_local_p_with_an_unreadable_window() -> None:
    # center 2.5, D = 1, and 1..3 are not kept: nothing to read, however it is renormalized
    keep = [T, F, F, F, T]
    for again in (False, True):
        weights, _ = local_p(LOCAL_Q, [0.0] * 5, keep, 1, LOCAL_W, LOCAL_V, softmax, again)
        assert weights == [0.0] * 5


def test_uniform() -> None:
    assert uniform([T, F, T, T, T, F]) == [0.25, 0.0, 0.25, 0.25, 0.25, 0.0]
    assert uniform([F, F]) == [0.0, 0.0]


def test_hard() -> None:
    assert hard_argmax([0.2, 0.5, 0.3]) == ([0.0, 1.0, 0.0], 1)
    assert hard_argmax([0.0, 0.4, 0.2, 0.4]) == ([0.0, 1.0, 0.0, 0.0], 1)  # the lowest of equals
    assert hard_argmax([0.0, 0.0]) == ([0.0, 0.0], -1)
    assert hard_sample([0.2, 0.5, 0.3], 2) == [0.0, 0.0, 1.0]
    assert hard_sample([0.0, 0.0], -1) == [0.0, 0.0]
    with pytest.raises(ValueError, match="position 3 of 3"):
        hard_sample([0.2, 0.5, 0.3], 3)
    with pytest.raises(ValueError, match="position -2 of 3"):
        hard_sample([0.2, 0.5, 0.3], -2)


def test_log_probability() -> None:
    assert close(log_probability([0.25, 0.75], 0), -2.0 * LN2)
    assert log_probability([0.0, 0.0], -1) == 0.0
    assert log_probability([0.0, 1.0], 0) == -math.inf


def test_entropy() -> None:
    assert close(entropy([0.5, 0.25, 0.0, 0.25]), 1.5 * LN2)
    assert entropy([0.0, 1.0, 0.0]) == 0.0
    assert entropy([0.0, 0.0]) == 0.0
    assert close(entropy(uniform([T, T, T])), LN3)


def test_coverage() -> None:
    assert coverage_update([0.25, 1.5], [0.75, 0.25]) == [1.0, 1.75]
    assert coverage_loss([0.5, 0.5], [0.25, 0.875]) == 0.75
    assert coverage_loss([0.5, 0.5], [0.0, 0.0]) == 0.0  # the first step repeats nothing


def test_context() -> None:
    assert context([0.5, 0.25, 0.25], [[2.0, 0.0], [4.0, 4.0], [0.0, 8.0]]) == [2.0, 3.0]
    assert context([0.0, 0.0], [[2.0, 0.0], [4.0, 4.0]]) == [0.0, 0.0]

"""The oracle against published vectors and against numbers derived by hand.

Hand derivations lean on logarithms, which make every nonlinearity rational: `tanh(ln a)` is
`(a^2 - 1) / (a^2 + 1)` (3/5 for 2, 4/5 for 3, 35/37 for 6), `sigmoid(ln a)` is `a / (1 + a)`, and the
softmax of logarithms is their arguments in proportion.
"""

import math
import random
from collections.abc import Sequence
from functools import partial
from itertools import permutations
from statistics import median

import pytest

from attention.reference import (
    Matrix,
    Normaliser,
    Vector,
    additive,
    additive_coverage,
    affine,
    concat,
    concat_relu,
    context,
    coverage_loss,
    coverage_update,
    dot,
    entmax15,
    entropy,
    general,
    global_keep,
    hard_argmax,
    hard_sample,
    jsd,
    kl,
    length,
    local_m_keep,
    local_p,
    location,
    log_probability,
    lstmn,
    lstmn_step,
    multi_head,
    nais_score,
    nais_weights,
    prod_relu,
    scaled_dot,
    self_attention,
    sigmoid,
    smoothed_softmax,
    softmax,
    sparsemax,
    times,
    tvd,
    uniform,
)

T, F = True, False
LN2, LN3 = math.log(2.0), math.log(3.0)
TO_ONE: list[Normaliser] = [softmax, sparsemax, entmax15]
SEEDS = range(20)


def close(got: float | Sequence[float], want: float | Sequence[float], within: float = 1e-12) -> bool:
    """Equal up to rounding; a list must also have the wanted length."""
    return bool(got == pytest.approx(want, rel=within, abs=within))


def some_scores(seed: int) -> tuple[Vector, list[bool]]:
    """Seven random scores, of which at least the last is readable."""
    rng = random.Random(seed)
    return [rng.gauss(0.0, 2.0) for _ in range(7)], [rng.random() < 0.6 for _ in range(6)] + [True]


def matrix(rng: random.Random, rows: int, columns: int) -> Matrix:
    return [[rng.gauss(0.0, 1.0) for _ in range(columns)] for _ in range(rows)]


# --- published vectors: seeing.md §3.3 ------------------------------------------------------------


def toy(weights: Vector) -> Vector:
    """The toy's output distribution: context, logits = c @ diag(1, 2), softmax."""
    c = context(weights, [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    return softmax([c[0], 2.0 * c[1]], [T, T])


def test_published_distances() -> None:
    assert close(jsd([0.7, 0.2, 0.1], [0.1, 0.2, 0.7]), 0.25310161544280674)
    assert close(tvd([0.7, 0.2, 0.1], [0.1, 0.2, 0.7]), 0.6)
    assert close(jsd([1.0, 0.0], [0.0, 1.0]), 0.6931471805599453)


def test_published_toy() -> None:
    alpha = softmax([2.0, 1.0, 0.0], [T, T, T])
    assert close(alpha, [0.665241, 0.244728, 0.090031], 1e-6)
    assert close(context(alpha, [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), [0.755272, 0.334759], 1e-6)
    assert close(toy(alpha), [0.521425, 0.478575], 1e-6)


def test_published_erasure() -> None:
    before, erased = softmax([2.0, 1.0, 0.0], [T, T, T]), softmax([2.0, 1.0, 0.0], [F, T, T])
    assert close(erased, [0.0, 0.731059, 0.268941], 1e-6)
    rest = before[1] + before[2]
    assert close(erased, [0.0, before[1] / rest, before[2] / rest])  # erasing, then renormalising
    assert close(toy(erased), [0.150452, 0.849548], 1e-6)
    assert close(jsd(toy(before), toy(erased)), 0.0804440694, 1e-9)
    assert hard_argmax(toy(before))[1] != hard_argmax(toy(erased))[1]


def test_published_uniform_and_permutations() -> None:
    alpha = softmax([2.0, 1.0, 0.0], [T, T, T])
    assert close(toy(uniform([T, T, T])), [0.339244, 0.660756], 1e-6)
    assert close(tvd(toy(alpha), toy(uniform([T, T, T]))), 0.182182, 1e-6)
    assert close(median(tvd(toy(alpha), toy(list(p))) for p in permutations(alpha)), 0.216110, 1e-6)


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
        dot([1.0, 2.0], [[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="zip"):
        softmax([1.0, 2.0], [T])
    with pytest.raises(ValueError, match="zip"):
        context([1.0, 2.0], [[1.0]])


# --- scores ---------------------------------------------------------------------------------------

# W_q q is [ln 2, ln 3]; v weighs the two hidden units by 10 and 5
ADDITIVE_Q, ADDITIVE_V = [1.0, 1.0], [10.0, 5.0]
ADDITIVE_WQ: Matrix = [[LN2, 0.0], [0.0, LN3]]
ADDITIVE_WK: Matrix = [[-LN2, LN3, 0.0], [0.0, -LN3, LN2]]


def test_additive() -> None:
    keys = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    # inside tanh: [ln 2, ln 3], [0, ln 3], [ln 6, 0], [ln 2, ln 6]
    want = [6.0 + 4.0, 0.0 + 4.0, 350.0 / 37.0 + 0.0, 6.0 + 175.0 / 37.0]
    assert close(additive(ADDITIVE_Q, keys, ADDITIVE_WQ, ADDITIVE_WK, ADDITIVE_V), want)


def test_additive_coverage() -> None:
    keys = [[0.0, 0.0, 0.0]] * 3
    w_c = [-LN2, LN2]
    got = additive_coverage(ADDITIVE_Q, keys, ADDITIVE_WQ, ADDITIVE_WK, ADDITIVE_V, w_c, [0.0, 1.0, 2.0])
    # inside tanh: [ln 2, ln 3], [0, ln 6], [-ln 2, ln 12], and tanh(ln 12) = 143/145
    assert close(got, [10.0, 175.0 / 37.0, -6.0 + 143.0 / 29.0])


def test_additive_without_coverage_yet() -> None:
    rng = random.Random(0)
    q, keys, v, w_c = matrix(rng, 1, 3)[0], matrix(rng, 5, 2), matrix(rng, 1, 7)[0], matrix(rng, 1, 7)[0]
    W_q, W_k = matrix(rng, 7, 3), matrix(rng, 7, 2)
    assert additive_coverage(q, keys, W_q, W_k, v, w_c, [0.0] * 5) == additive(q, keys, W_q, W_k, v)


def test_concat() -> None:
    # inside tanh: ln 2, then ln 2 + ln 3
    assert close(concat([1.0], [[0.0], [1.0]], [[LN2, LN3]], [37.0]), [22.2, 35.0])


@pytest.mark.parametrize("seed", SEEDS)
def test_concat_is_additive_with_the_matrix_split(seed: int) -> None:
    rng = random.Random(seed)
    q, keys, W, v = matrix(rng, 1, 3)[0], matrix(rng, 5, 2), matrix(rng, 7, 5), matrix(rng, 1, 7)[0]
    W_q, W_k = [row[:3] for row in W], [row[3:] for row in W]
    assert close(concat(q, keys, W, v), additive(q, keys, W_q, W_k, v))


def test_dot() -> None:
    assert dot([1.0, 2.0], [[3.0, 4.0], [-2.0, 1.0], [0.5, 0.0]]) == [11.0, 0.0, 0.5]


def test_scaled_dot() -> None:
    assert scaled_dot([1.0, 2.0, 3.0, 4.0], [[1.0] * 4, [4.0, 0.0, 0.0, -2.0]]) == [5.0, -2.0]


def test_general() -> None:
    W = [[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]]  # W k is [3, 4], then [4, 1]
    assert general([1.0, 2.0], [[1.0, 1.0, 1.0], [2.0, 0.0, 1.0]], W) == [11.0, 6.0]


def test_general_does_not_turn_the_matrix() -> None:
    assert general([1.0, 0.0], [[0.0, 1.0]], [[0.0, 5.0], [7.0, 0.0]]) == [5.0]


def test_location() -> None:
    W = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert location([1.0, 10.0], 3, W) == [21.0, 43.0, 65.0]
    assert location([1.0, 10.0], 2, W) == [21.0, 43.0]
    with pytest.raises(ValueError, match="3 positions, not 4"):
        location([1.0, 10.0], 4, W)


def test_prod_relu() -> None:
    # q * k = [3, -2]; W of it [1, -5, -4]; with b [1.5, 1, -4]; cut off [1.5, 1, 0]; 2*1.5 + 3*1 = 6
    # q * k = [0, 0]; b alone [0.5, 6, 0]; 2*0.5 + 3*6 = 19
    W, b, h = [[1.0, 1.0], [-1.0, 1.0], [0.0, 2.0]], [0.5, 6.0, 0.0], [2.0, 3.0, 100.0]
    assert prod_relu([1.0, 2.0], [[3.0, -1.0], [0.0, 0.0]], W, b, h) == [6.0, 19.0]


def test_concat_relu() -> None:
    # [1; 2]: W gives [3, 0], with b [2, 0], 5*2 = 10; [1; -3]: W gives [-2, 5], with b [-3, 5], 7*5 = 35
    W, b, h = [[1.0, 1.0], [2.0, -1.0]], [-1.0, 0.0], [5.0, 7.0]
    assert concat_relu([1.0], [[2.0], [-3.0]], W, b, h) == [10.0, 35.0]


# --- normalisers ----------------------------------------------------------------------------------


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


@pytest.mark.parametrize("normaliser", TO_ONE)
@pytest.mark.parametrize("seed", SEEDS)
def test_normalisers_sum_to_one(normaliser: Normaliser, seed: int) -> None:
    scores, keep = some_scores(seed)
    weights = normaliser(scores, keep)
    assert close(sum(weights), 1.0)
    assert min(weights) >= 0.0
    assert close(normaliser([e + 100.0 for e in scores], keep), weights)
    order = sorted(range(7), key=lambda i: weights[i] if keep[i] else -1.0)
    assert order[-1] == max((i for i in range(7) if keep[i]), key=lambda i: scores[i])


@pytest.mark.parametrize("normaliser", [*TO_ONE, partial(smoothed_softmax, beta=0.5)])
def test_normalisers_never_read_what_is_not_kept(normaliser: Normaliser) -> None:
    assert normaliser([3.0, 1.0, 2.0], [F, F, F]) == [0.0, 0.0, 0.0]
    assert normaliser([], []) == []
    without = normaliser([0.3, -0.2], [T, T])
    for junk in (math.nan, math.inf, -math.inf, 1e6):
        assert normaliser([junk, 0.3, junk, -0.2], [F, T, F, T]) == [0.0, without[0], 0.0, without[1]]


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


# T = 5 and sigmoid(ln 5/3) = 5/8, so the centre is 4 * 5/8 = 2.5: tanh(W q) is tanh(ln 2) = 3/5
LOCAL_Q, LOCAL_W, LOCAL_V = [1.0, 1.0], [[0.0, LN2]], [math.log(5 / 3) / 0.6]
LOCAL_SCORES = [7.0, 0.0, LN2, LN3, 7.0, 7.0]


def test_local_p() -> None:
    keep = [T, T, T, T, T, F]
    weights, centre = local_p(LOCAL_Q, LOCAL_SCORES, keep, 1, LOCAL_W, LOCAL_V, softmax)
    assert close(centre, 2.5)
    # D = 1: positions 1, 2, 3; 2 (D/2)^2 = 1/2; squared distances 2.25, 0.25, 0.25
    far, near = math.exp(-4.5), math.exp(-0.5)
    assert close(weights, [0.0, far / 6, near / 3, near / 2, 0.0, 0.0])
    assert sum(weights) < 1.0


def test_local_p_renormalised() -> None:
    keep = [T, T, T, T, T, F]
    weights, centre = local_p(LOCAL_Q, LOCAL_SCORES, keep, 1, LOCAL_W, LOCAL_V, softmax, renormalise=True)
    assert close(centre, 2.5)
    # times 6 e^0.5 the weights are e^-4, 2, 3
    far = math.exp(-4.0)
    assert close(weights, [0.0, far / (far + 5), 2 / (far + 5), 3 / (far + 5), 0.0, 0.0])


def test_local_p_with_a_wide_window_a_gap_and_another_normaliser() -> None:
    # D = 4: 2 (D/2)^2 = 8; the kept 0, 1, 3, 4 have squared distances 6.25, 2.25, 0.25, 2.25
    keep = [T, T, F, T, T, F]
    weights, centre = local_p(LOCAL_Q, [0.0] * 6, keep, 4, LOCAL_W, LOCAL_V, sparsemax)
    assert close(centre, 2.5)
    decay = [math.exp(-d / 8) for d in (6.25, 2.25, 0.25, 2.25)]
    assert close(weights, [decay[0] / 4, decay[1] / 4, 0.0, decay[2] / 4, decay[3] / 4, 0.0])


def test_local_p_of_one_word_and_of_none() -> None:
    assert local_p(LOCAL_Q, [3.0, 5.0], [T, F], 2, LOCAL_W, LOCAL_V, softmax) == ([1.0, 0.0], 0.0)
    for again in (False, True):
        nothing = local_p(LOCAL_Q, [3.0, 5.0], [F, F], 2, LOCAL_W, LOCAL_V, softmax, again)
        assert nothing == ([0.0, 0.0], 0.0)


def test_local_p_with_an_unreadable_window() -> None:
    # centre 2.5, D = 1, and 1..3 are not kept: nothing to read, however it is renormalised
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
    step = lstmn_step(
        [1.0], TAPE_H, TAPE_M, [1.0, 7.0], TAPE_WH, TAPE_WX, TAPE_WS, TAPE_V, TAPE_W, None, True
    )
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


# --- recommendation -------------------------------------------------------------------------------


def test_nais_prod() -> None:
    p, history = [1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]]
    W, b, h = [[1.0, 0.0], [0.0, -1.0]], [0.0, 0.0], [LN3, 10.0]
    # p * q = [1, 0], [0, 2]; cut off [1, 0], [0, 0]; f = ln 3, 0; sum exp = 4
    assert close(nais_weights(p, history, W, b, h, 0.5, "prod"), [3 / 2, 1 / 2])
    assert close(nais_score(p, history, W, b, h, 0.5, "prod", 0.25), 0.25 + 1.5 + 2 * 0.5)
    assert close(nais_score(p, history, W, b, h, 1.0, "prod", 0.25), 0.25 + 0.75 + 2 * 0.25)
    assert close(nais_score(p, history, W, b, h, 0.0, "prod", 0.25), 0.25 + 3.0 + 2 * 1.0)


def test_nais_concat() -> None:
    p, history = [1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]]
    W, b, h = [[1.0, 1.0, 0.0, -1.0], [-1.0, 0.0, 0.0, 0.0]], [-2.0, 0.5], [LN3, 10.0]
    # W [p; q] = [3, -1], [2, -1]; with b [1, -0.5], [0, -0.5]; f = ln 3, 0
    assert close(nais_weights(p, history, W, b, h, 0.5, "concat"), [3 / 2, 1 / 2])
    assert close(nais_score(p, history, W, b, h, 0.5, "concat", -1.0), -1.0 + 1.5 + 2 * 0.5)


def test_nais_without_history() -> None:
    assert nais_weights([1.0], [], [[1.0]], [0.0], [1.0], 0.5, "prod") == []
    assert nais_score([1.0], [], [[1.0]], [0.0], [1.0], 0.5, "prod", 0.25) == 0.25


# --- distances ------------------------------------------------------------------------------------


def test_distances() -> None:
    assert tvd([0.5, 0.5, 0.0], [0.25, 0.25, 0.5]) == 0.5
    assert close(kl([0.5, 0.5], [0.25, 0.75]), 0.5 * LN2 + 0.5 * math.log(2 / 3))
    assert kl([0.0, 1.0], [0.0, 1.0]) == 0.0
    # m = [3/4, 1/4]: KL([1, 0], m) = ln 4/3, KL([1/2, 1/2], m) = ln(2/3)/2 + ln(2)/2 = ln(4/3)/2
    assert close(jsd([1.0, 0.0], [0.5, 0.5]), 0.5 * math.log(4 / 3) + 0.25 * math.log(4 / 3))
    assert jsd([0.3, 0.7], [0.3, 0.7]) == 0.0
    assert close(jsd([0.2, 0.8], [0.6, 0.4]), jsd([0.6, 0.4], [0.2, 0.8]))

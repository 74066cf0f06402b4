"""The reference: the equations of attention in plain Python floats, lists and loops.

One sentence, one query, one head at a time; the tests loop over batch, query and head. It shares no
code with `heedful.attention` and uses neither torch nor numpy. A matrix is a list of rows and `W x` is the
ordinary product of matrix and vector; positions count from 0; `keep` is True where a key may be read.
Sizes that do not fit raise ValueError: every `zip` is strict.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

Vector = list[float]
Matrix = list[list[float]]
Keep = list[bool]
Normalizer = Callable[[Vector, Keep], Vector]


# --- the arithmetic everything else is written in -------------------------------------------------


def inner(left: Vector, right: Vector) -> float:
    """`left . right`."""
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


def times(matrix: Matrix, vector: Vector) -> Vector:
    """`W x`."""
    return [inner(row, vector) for row in matrix]


def affine(matrix: Matrix, vector: Vector, bias: Vector | None) -> Vector:
    """`W x + b`, or `W x` where there is no bias."""
    product = times(matrix, vector)
    return product if bias is None else plus(product, bias)


def plus(left: Vector, right: Vector) -> Vector:
    """`left + right`."""
    return [a + b for a, b in zip(left, right, strict=True)]


def hadamard(left: Vector, right: Vector) -> Vector:
    """`left * right`, element by element."""
    return [a * b for a, b in zip(left, right, strict=True)]


def tanh(vector: Vector) -> Vector:
    """`tanh` of every element."""
    return [math.tanh(x) for x in vector]


def relu(vector: Vector) -> Vector:
    """`max(x, 0)` of every element."""
    return [max(x, 0.0) for x in vector]


def sigmoid(x: float) -> float:
    """`1 / (1 + exp(-x))`."""
    return 1.0 / (1.0 + math.exp(-x))


def length(keep: Keep) -> int:
    """T of the papers, the length without padding: one more than the last readable index."""
    return max((i + 1 for i, kept in enumerate(keep) if kept), default=0)


# --- scores of the tape and of several heads; the others are in `heedful.trace.plain_scores` -------


def additive(q: Vector, keys: Matrix, W_q: Matrix, W_k: Matrix, v: Vector) -> Vector:
    """`e_i = v' tanh(W_q q + W_k k_i)`: Bahdanau 2015, appendix A.1.2."""
    return [inner(v, tanh(plus(times(W_q, q), times(W_k, k)))) for k in keys]


def scaled_dot(q: Vector, keys: Matrix) -> Vector:
    """`e_i = q . k_i / sqrt(d)`, d the key's size: Vaswani 2017, eq. 1."""
    return [inner(q, k) / math.sqrt(len(k)) for k in keys]


# --- normalizers; exactly 0.0 where not kept, and a score there is never read ------------


def kept_scores(scores: Vector, keep: Keep) -> Vector:
    """The scores of the readable keys, in order."""
    return [e for e, kept in zip(scores, keep, strict=True) if kept]


def softmax(scores: Vector, keep: Keep) -> Vector:
    """`a_i = exp(e_i) / sum_j exp(e_j)`, all scores lowered by the largest, which cancels out."""
    readable = kept_scores(scores, keep)
    top = max(readable, default=0.0)
    total = math.fsum(math.exp(e - top) for e in readable)
    return [math.exp(e - top) / total if kept else 0.0 for e, kept in zip(scores, keep, strict=True)]


def smoothed_softmax(scores: Vector, keep: Keep, beta: float) -> Vector:
    """`a_i = exp(e_i) / (sum_j exp e_j)^beta`: He 2018 (NAIS). Nothing cancels, so nothing is shifted."""
    total = math.fsum(math.exp(e) for e in kept_scores(scores, keep))
    return [math.exp(e) / total**beta if kept else 0.0 for e, kept in zip(scores, keep, strict=True)]


def sparsemax(scores: Vector, keep: Keep) -> Vector:
    """`a_i = max(e_i - tau, 0)` with sum 1: Martins & Astudillo 2016, algorithm 1.

    With scores sorted downwards the support is the largest k with `1 + k z_k > z_1 + .. + z_k`, and
    `tau = (z_1 + .. + z_k - 1) / k`. Scores are lowered by the largest: the shift cancels out.
    """
    readable = kept_scores(scores, keep)
    top = max(readable, default=0.0)
    ordered = sorted((e - top for e in readable), reverse=True)
    tau = 0.0
    for k in range(1, len(ordered) + 1):
        head = math.fsum(ordered[:k])
        if 1.0 + k * ordered[k - 1] > head:
            tau = (head - 1.0) / k
    return [max(e - top - tau, 0.0) if kept else 0.0 for e, kept in zip(scores, keep, strict=True)]


def entmax15(scores: Vector, keep: Keep) -> Vector:
    """`a_i = max(e_i / 2 - tau, 0)^2` with sum 1: Peters 2019, alpha = 1.5.

    The threshold is found by halving: with the largest `e / 2` moved to 0 the sum is at least 1 at
    `tau = -1` and 0 at `tau = 0`. Halving goes on until no float lies between the two ends.
    """
    readable = kept_scores(scores, keep)
    top = max(readable, default=0.0)
    low, high = -1.0, 0.0
    while low < (tau := (low + high) / 2.0) < high:
        if math.fsum(max((e - top) / 2.0 - tau, 0.0) ** 2 for e in readable) >= 1.0:
            low = tau
        else:
            high = tau
    return [max((e - top) / 2.0 - low, 0.0) ** 2 if kept else 0.0 for e, kept in zip(scores, keep, strict=True)]


# --- placement ---------------------------------------------------------------------------


def global_keep(keep: Keep) -> Keep:
    """Global: all of the source."""
    return list(keep)


def local_m_keep(t: int, keep: Keep, window: int) -> Keep:
    """Local-m: `p_t = min(t, T-1)`, readable where `|i - p_t| <= D`: Luong 2015, §3.2."""
    center = min(t, length(keep) - 1)
    return [kept and abs(i - center) <= window for i, kept in enumerate(keep)]


def local_p(
    q: Vector,
    scores: Vector,
    keep: Keep,
    window: int,
    W: Matrix,
    v: Vector,
    normalizer: Normalizer,
    renormalize: bool = False,
) -> tuple[Vector, float]:
    """Local-p, Luong 2015, eq. 9 and 10, counted from 0: the weights and the center `p_t`.

    `p_t = (T-1) sigmoid(v' tanh(W q))`, the normalizer over `|i - floor(p_t)| <= D`, times
    `exp(-(i - p_t)^2 / (2 (D/2)^2))`. D is at least 1. An empty sentence has its center at 0.
    """
    center = max(length(keep) - 1, 0) * sigmoid(inner(v, tanh(times(W, q))))
    inside = [kept and abs(i - math.floor(center)) <= window for i, kept in enumerate(keep)]
    weights = [
        a * math.exp(-((i - center) ** 2) / (2.0 * (window / 2.0) ** 2))
        for i, a in enumerate(normalizer(scores, inside))
    ]
    if renormalize:
        total = math.fsum(weights)
        weights = [a / total if total > 0.0 else 0.0 for a in weights]
    return weights, center


def uniform(keep: Keep) -> Vector:
    """`a_i = 1 / (number of readable keys)`: the baseline."""
    return [1.0 / keep.count(True) if kept else 0.0 for kept in keep]


def hard_argmax(weights: Vector) -> tuple[Vector, int]:
    """All weight on the heaviest position, the lowest of equals; zeros and -1 where there is no weight."""
    index = -1
    for i, a in enumerate(weights):
        if a > (weights[index] if index >= 0 else 0.0):
            index = i
    return hard_sample(weights, index), index


def hard_sample(weights: Vector, index: int) -> Vector:
    """All weight on the position that was drawn; zeros for -1: Xu 2015, §4.1."""
    if not -1 <= index < len(weights):
        raise ValueError(f"position {index} of {len(weights)}")
    return [1.0 if i == index else 0.0 for i in range(len(weights))]


def log_probability(weights: Vector, index: int) -> float:
    """`log a_index`; 0 for -1, the certain event of reading nothing."""
    if index == -1:
        return 0.0
    return math.log(weights[index]) if weights[index] > 0.0 else -math.inf


def entropy(weights: Vector) -> float:
    """`H = -sum_i a_i ln a_i`, with `0 ln 0 = 0`."""
    return -math.fsum(a * math.log(a) for a in weights if a > 0.0)


def coverage_update(coverage: Vector, weights: Vector) -> Vector:
    """`C_i <- C_i + a_i`: See 2017, eq. 10."""
    return plus(coverage, weights)


def coverage_loss(weights: Vector, coverage: Vector) -> float:
    """`sum_i min(a_i, C_i)`, C before this step's update: See 2017, eq. 12."""
    return math.fsum(min(a, c) for a, c in zip(weights, coverage, strict=True))


def context(weights: Vector, values: Matrix) -> Vector:
    """`c = sum_i a_i v_i`: Bahdanau 2015, eq. 5. No values at all give an empty vector."""
    columns = zip(*values, strict=True)
    return [inner(weights, list(column)) for column in columns]


# --- several heads and self-attention ---------------------------------------------


def head_slice(vector: Vector, head: int, heads: int) -> Vector:
    """The part of a projected vector that belongs to one head: `heads` equal consecutive slices."""
    width, left_over = divmod(len(vector), heads)
    if left_over:
        raise ValueError(f"{len(vector)} does not split into {heads} heads")
    return vector[head * width : (head + 1) * width]


def multi_head(
    query_vec: Vector,
    key_vecs: Matrix,
    value_vecs: Matrix,
    keep: Keep,
    heads: int,
    W_q: Matrix,
    b_q: Vector | None,
    W_k: Matrix,
    b_k: Vector | None,
    W_v: Matrix,
    b_v: Vector | None,
    W_o: Matrix,
    b_o: Vector | None,
) -> tuple[Vector, Matrix]:
    """Vaswani 2017, §3.2.2: the output for one query, and its weights as `[head][key]`.

    `head_h = softmax(q_h . k_h / sqrt(d/heads)) v_h`, output `W_o [head_1; ..; head_H] + b_o`.
    """
    q = affine(W_q, query_vec, b_q)
    keys = [affine(W_k, k, b_k) for k in key_vecs]
    values = [affine(W_v, v, b_v) for v in value_vecs]
    joined: Vector = []
    attentions: Matrix = []
    for head in range(heads):
        head_keys = [head_slice(k, head, heads) for k in keys]
        head_values = [head_slice(v, head, heads) for v in values]
        weights = softmax(scaled_dot(head_slice(q, head, heads), head_keys), keep)
        joined += context(weights, head_values)
        attentions.append(weights)
    if not any(keep):  # spec, Notation: who may read nothing gets zeros, not the bias of the joining
        return [0.0] * len(W_o), attentions
    return affine(W_o, joined, b_o), attentions


def self_attention(
    xs: Matrix,
    keep: Keep,
    heads: int,
    W_q: Matrix,
    b_q: Vector | None,
    W_k: Matrix,
    b_k: Vector | None,
    W_v: Matrix,
    b_v: Vector | None,
    W_o: Matrix,
    b_o: Vector | None,
    causal: bool,
) -> tuple[Matrix, list[Matrix]]:
    """Spec §3: `multi_head` from every position t to all, or when causal to j <= t.

    Returns the outputs as `[position]` and the weights as `[position][head][key]`. A padded position
    asks like any other; it is only never read.
    """
    outputs: Matrix = []
    attentions: list[Matrix] = []
    for t, x in enumerate(xs):
        allowed = [kept and (j <= t or not causal) for j, kept in enumerate(keep)]
        output, weights = multi_head(x, xs, xs, allowed, heads, W_q, b_q, W_k, b_k, W_v, b_v, W_o, b_o)
        outputs.append(output)
        attentions.append(weights)
    return outputs, attentions


# --- the LSTMN --------------------------------------------------------------


class LstmnStep(NamedTuple):
    """One step of the LSTMN: the new slot, and the summary of the earlier ones."""

    h: Vector
    m: Vector
    summary: Vector  # h~_t
    m_summary: Vector  # m~_t
    weights: Vector  # over h_1..h_{t-1}
    slot_weight: float  # of the zero slot; 0.0 where there is none


def lstmn_step(
    x: Vector,
    hs: Matrix,
    ms: Matrix,
    summary_prev: Vector,
    W_h: Matrix,
    W_x: Matrix,
    W_s: Matrix | None,
    v: Vector,
    W: Matrix,
    b: Vector | None,
    zero_slot: bool,
) -> LstmnStep:
    """Cheng 2016, §3.1: one step, given the tapes `h_1..h_{t-1}` and `m_1..m_{t-1}`.

    `a_i = softmax_i v' tanh(W_h h_i + W_x x + W_s h~_{t-1})`, `h~ = sum a_i h_i`, `m~ = sum a_i m_i`,
    `[i f o g] = W [h~; x] + b`, `m = f*m~ + i*g`, `h = o*tanh(m)`; sigmoid on i, f, o and tanh on g.
    """
    size = len(W) // 4
    zeros = [0.0] * size
    slots = 1 if zero_slot else 0
    tape_h = [zeros] * slots + hs
    tape_m = [zeros] * slots + ms
    scores = []
    for h_i in tape_h:
        total = plus(times(W_h, h_i), times(W_x, x))
        if W_s is not None:
            total = plus(total, times(W_s, summary_prev))
        scores.append(inner(v, tanh(total)))
    weights = softmax(scores, [True] * len(scores))
    summary = context(weights, tape_h) if tape_h else zeros
    m_summary = context(weights, tape_m) if tape_m else zeros

    gates = affine(W, summary + x, b)
    i_gate = [sigmoid(z) for z in gates[:size]]
    f_gate = [sigmoid(z) for z in gates[size : 2 * size]]
    o_gate = [sigmoid(z) for z in gates[2 * size : 3 * size]]
    g = tanh(gates[3 * size :])
    m = plus(hadamard(f_gate, m_summary), hadamard(i_gate, g))
    h = hadamard(o_gate, tanh(m))
    return LstmnStep(h, m, summary, m_summary, weights[slots:], weights[0] if zero_slot else 0.0)


def lstmn(
    xs: Matrix,
    W_h: Matrix,
    W_x: Matrix,
    W_s: Matrix | None,
    v: Vector,
    W: Matrix,
    b: Vector | None,
    zero_slot: bool,
) -> list[LstmnStep]:
    """Cheng 2016, §3.1, over a whole sequence: `h~_0 = 0`, and the tape starts empty."""
    steps: list[LstmnStep] = []
    summary = [0.0] * (len(W) // 4)
    for x in xs:
        hs, ms = [past.h for past in steps], [past.m for past in steps]
        step = lstmn_step(x, hs, ms, summary, W_h, W_x, W_s, v, W, b, zero_slot)
        steps.append(step)
        summary = step.summary
    return steps

"""Mistakes that other implementations of attention have made: each is shown to be one, and not to happen here."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
import torch
from torch import Tensor, nn

from attention.helpers import (
    COVERED,
    FULL,
    NORMALIZERS,
    WEIGHTS,
    attend,
    build,
    close,
    context_and_weights,
    make_inputs,
    mask,
)
from heedful.attention import (
    Attention,
    Dot,
    General,
    LocalM,
    LocalP,
    Placement,
    entmax15,
    masked_softmax,
    smoothed_softmax,
    sparsemax,
)


def test_final_states_of_two_directions_are_joined_per_sentence() -> None:
    """`final[2, B, H].view(B, 2H)` gives a sentence the states of its neighbors."""
    torch.manual_seed(1)
    lstm = nn.LSTM(3, 5, bidirectional=True, batch_first=True).double()
    attention = Attention(Dot(10, 10))
    x = torch.randn(4, 7, 3, dtype=torch.float64)

    def attend_final(x: Tensor, mixed: bool) -> Tensor:
        states, (final, _) = lstm(x)
        query = final.view(-1, 10) if mixed else torch.cat([final[-2], final[-1]], dim=-1)
        memory = attention.prepare(states, torch.ones(x.shape[:2], dtype=torch.bool))
        return attend(attention, query[:, None], memory)[0]

    for i in range(4):
        close(attend_final(x, mixed=False)[i], attend_final(x[i : i + 1], mixed=False)[0], 1e-12)
        close(
            attend_final(x[i : i + 1], mixed=True), attend_final(x[i : i + 1], mixed=False), 1e-12
        )  # correct for one sentence
    assert not torch.allclose(attend_final(x, mixed=True), attend_final(x, mixed=False))  # and for one only


def test_smoothed_softmax_is_not_invariant_to_a_shift_of_the_scores() -> None:
    """Subtracting the maximum m changes the result by `exp(-m (1 - beta))`."""
    scores, keep = torch.tensor([[3.0, 5.0, 4.0, 9.0]], dtype=torch.float64), mask("1110")
    for beta in (0.3, 0.5, 0.9, 1.0):
        lowered = smoothed_softmax(scores - 5.0, keep, beta)
        close(lowered, smoothed_softmax(scores, keep, beta) * math.exp(-5.0 * (1 - beta)), 1e-12)
    close(smoothed_softmax(scores, keep, 1.0), masked_softmax(scores, keep), 1e-12)


def test_smoothed_softmax_is_correct_where_the_exponential_of_a_score_overflows() -> None:
    """exp(1000) overflows float64, exp(1000) / (sum exp)^0.5 does not; the same at 100 in float32."""
    for top, dtype, within in (
        (1000, torch.float64, 1e-11),
        (-1000, torch.float64, 1e-11),
        (100, torch.float32, 1e-4),
    ):
        scores = [top, top - 1, top - 3]
        total = sum((Decimal(e).exp() for e in scores), Decimal(0))
        expected = [float(Decimal(e).exp() / total.sqrt()) for e in scores]
        actual = smoothed_softmax(torch.tensor([[*scores, 5000.0]], dtype=dtype), mask("1110"), 0.5)
        assert actual[0].tolist() == pytest.approx([*expected, 0.0], rel=within)


def test_very_negative_scores_are_not_lost_to_a_masked_zero() -> None:
    """AllenNLP: `softmax(v * mask) * mask / sum` gives zeros for -200, -201 beside a masked 0."""
    scores, keep = torch.tensor([[-200.0, -201.0, 0.0]]), mask("110")
    wrong = (scores * keep).softmax(dim=-1) * keep
    assert (wrong / (wrong.sum() + 1e-13)).tolist() == [[0.0, 0.0, 0.0]]
    share = 1 / (1 + math.exp(-1))
    assert masked_softmax(scores, keep)[0].tolist() == pytest.approx([share, 1 - share, 0.0])
    for normalize in (sparsemax, entmax15):
        assert float(normalize(scores, keep).sum()) == pytest.approx(1.0)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_padding_is_not_merely_unlikely(normalizer: str) -> None:
    """d2l: a fill of -1e6 is uniform over padding in an empty row, and wins over -2e6."""
    scores, keep = torch.tensor([[-2e6, -2e6, 0.0], [1.0, 2.0, 3.0]]), mask("110", "000")
    wrong = scores.masked_fill(~keep, -1e6).softmax(dim=-1)
    assert wrong.tolist() == [[0.0, 0.0, 1.0], [pytest.approx(1 / 3)] * 3]
    weights = NORMALIZERS[normalizer](scores, keep)
    assert (weights[~keep] == 0).all()
    if NORMALIZERS[normalizer].mass == "one":
        assert weights[0].tolist() == pytest.approx([0.5, 0.5, 0.0])


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_an_empty_row_is_not_nan(normalizer: str) -> None:
    """JoeyNMT, fairseq, OpenNMT-py: a row of -inf is NaN after softmax, and so is its gradient."""
    scores = torch.ones(1, 3, requires_grad=True)
    assert scores.masked_fill(~mask("000"), -math.inf).softmax(dim=-1).isnan().all()
    weights = NORMALIZERS[normalizer](scores, mask("000"))
    assert (weights == 0).all()
    (gradient,) = torch.autograd.grad(weights.sum(), scores)
    assert (gradient == 0).all()


def test_scores_are_not_multiplied_by_the_mask() -> None:
    """SNLI-attention: a padded score of 0 keeps a share of exp(0)."""
    scores, keep = torch.tensor([[-3.0, -3.0, 4.0]]), mask("110")
    assert float((scores * keep).softmax(dim=-1)[0, 2]) > 0.9
    assert masked_softmax(scores, keep).tolist() == [[0.5, 0.5, 0.0]]


def place_weights(
    placement: Placement, share: float, width: int, keep: str | None = None, position: int = 0
) -> tuple[list[float], float]:
    """Return weights and center for scores of 0, where the sigmoid of local-p gives `share`."""
    attention = Attention(General(1, 1), placement=placement).double()
    with torch.no_grad():
        for name, parameter in attention.named_parameters():
            parameter.fill_(math.log(share / (1 - share)) / math.tanh(1.0) if name.endswith("outer.weight") else 1.0)
    memory = attention.prepare(torch.zeros(1, width, 1, dtype=torch.float64), mask(keep or "1" * width))
    query = torch.ones(1, 1, 1, dtype=torch.float64)
    output, _ = attention(query, memory, positions=torch.tensor([[position]]), hooks=FULL)
    assert output.weights is not None
    weights: list[float] = output.weights[0, 0, 0].tolist()
    return weights, float(output.extras["center"].detach())


def test_local_p_is_not_renormalized_by_default() -> None:
    """Luong 2015 tried it renormalized, and it "didn't work as well"."""
    weights, center = place_weights(LocalP(1, 2), 0.35, 11)
    gaussian = [math.exp(-((i - center) ** 2) / 2) / 5 if 1 <= i <= 5 else 0.0 for i in range(11)]
    assert center == pytest.approx(3.5)
    assert weights == pytest.approx(gaussian)
    assert sum(weights) < 0.6
    renormalized, _ = place_weights(LocalP(1, 2, renormalize=True), 0.35, 11)
    assert renormalized == pytest.approx([a / sum(gaussian) for a in gaussian])


def test_the_window_of_local_p_lies_around_the_floor_of_its_center() -> None:
    """`floor(p_t)`, not the nearest position; the Gaussian stays on p_t itself."""
    weights, center = place_weights(LocalP(1, 1), 0.39, 11)
    assert center == pytest.approx(3.9)
    assert [i for i, a in enumerate(weights) if a > 0] == [2, 3, 4]
    assert weights[4] > weights[3] > weights[2]


def test_the_center_of_local_p_lies_between_the_first_and_the_last_readable_position() -> None:
    """`(T-1) sigmoid`, where T counts no padding; T itself would point past the end."""
    almost = 1 - 1e-9
    for keep in ("1111111", "111100000", "0101100", "1"):
        last = keep.rindex("1")
        _, center = place_weights(LocalP(1, 2), almost, len(keep), keep)
        assert center == pytest.approx(last, abs=1e-6)
        assert place_weights(LocalP(1, 2), 1e-9, len(keep), keep)[1] == pytest.approx(0, abs=1e-6)
        assert place_weights(LocalP(1, 2), 0.5, len(keep), keep)[1] == pytest.approx(last / 2)


def test_local_m_stays_at_the_last_position_when_the_target_is_longer() -> None:
    """p_t is clamped to T-1, and T counts no padding."""
    for position, window in ((0, [0, 1]), (3, [2, 3, 4]), (4, [3, 4]), (5, [3, 4]), (99, [3, 4])):
        weights, center = place_weights(LocalM(1), 0.5, 9, "111110000", position)
        assert center == min(position, 4)
        assert weights == pytest.approx([1 / len(window) if i in window else 0.0 for i in range(9)])


def test_local_m_has_no_gaussian() -> None:
    assert place_weights(LocalM(3), 0.5, 7, position=3)[0] == pytest.approx([1 / 7] * 7)


def test_coverage_does_not_change_the_memory() -> None:
    """OpenNMT-py issue 867: `enc_out += linear_cover(...)` writes into the memory bank."""
    attention, inputs = build(COVERED), make_inputs()
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    before = [memory.keys.clone(), memory.values.clone(), memory.keep.clone()]
    carry = attention.initial_carry(memory, 3)
    for _ in range(3):
        _, carry = attention(inputs.query, memory, carry=carry)
    for part, was in zip((memory.keys, memory.values, memory.keep), before, strict=True):
        assert torch.equal(part, was)


def test_coverage_is_of_earlier_weights_alone() -> None:
    """OpenNMT-py issue 2013: C must not include a_t; the first step is plain additive attention."""
    covered, plain, inputs = build(COVERED), build(), make_inputs()
    plain.load_state_dict({k: v for k, v in covered.state_dict().items() if k != "score.w_c"})
    memory = covered.prepare(inputs.keys, inputs.keep, inputs.values)
    carry = covered.initial_carry(memory, 3)
    assert (carry["coverage"] == 0).all()
    first, carry = covered(inputs.query, memory, carry=carry, hooks=WEIGHTS)
    assert first.weights is not None
    close(first.weights, context_and_weights(plain, inputs)[1], 1e-12)
    assert (first.extras["coverage_loss"] == 0).all()  # no coverage before the first step
    assert torch.equal(carry["coverage"], first.weights)
    second, carry = covered(inputs.query, memory, carry=carry, hooks=WEIGHTS)
    assert second.weights is not None
    loss = torch.minimum(second.weights, first.weights).sum(dim=-1)
    close(second.extras["coverage_loss"], loss, 1e-14)
    assert torch.equal(carry["coverage"], first.weights + second.weights)
    assert not torch.allclose(second.weights, first.weights)


def test_dot_is_a_dot_product() -> None:
    """OpenNMT-py issue 141: what was called "dotprod" was Luong's general, with a matrix to learn."""
    dot, inputs = build("dot"), make_inputs("dot")
    assert list(dot.parameters()) == []
    general = build("general", query=11, key=11)
    assert not torch.allclose(context_and_weights(general, inputs)[1], context_and_weights(dot, inputs)[1])
    with torch.no_grad():
        general.get_parameter("score.key.weight").copy_(torch.eye(11))
    close(context_and_weights(general, inputs)[1], context_and_weights(dot, inputs)[1], 1e-12)


def test_additive_has_the_matrices_of_bahdanau_2015() -> None:
    """Keras: `sum tanh(q + k)` without W_q, W_k and v is another function."""
    attention = build("additive", query=11, key=11)
    assert {name: tuple(p.shape) for name, p in attention.named_parameters()} == {
        "score.v": (17,),
        "score.query.weight": (17, 11),
        "score.key.weight": (17, 11),
    }


def test_padding_of_shorter_sentences_has_no_weight() -> None:
    """A common mistake: masks made from the padded width instead of the length."""
    inputs = make_inputs()
    _, weights = context_and_weights(build(), inputs)
    for i, length in ((1, 4), (4, 3)):
        assert (weights[i, ..., length:] == 0).all()
        assert weights[i].sum().item() == pytest.approx(3.0)


def test_the_context_is_made_of_values_and_not_of_projected_keys() -> None:
    """`W_k k_i` is for the score alone."""
    for score in ("additive", "general", "concat"):
        attention, inputs = build(score), make_inputs(score)
        assert torch.equal(attention.prepare(inputs.keys, inputs.keep).values[:, :, 0], inputs.keys)

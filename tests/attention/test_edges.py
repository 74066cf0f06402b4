"""Edge cases: precision, empty sources, masks, padding on the tape."""

from __future__ import annotations

import pytest
import torch

from attention.helpers import (
    NORMALIZERS,
    WEIGHTS,
    attend,
    build,
    close,
    context_and_weights,
    make_inputs,
    mask,
    randomize_parameters,
    rng,
)
from heedful.attention import Hooks, Override
from heedful.errors import ShapeError
from heedful.layers.lstmn import LSTMNCell


def test_uniform_weights_have_the_precision_of_the_scores() -> None:
    _, weights = context_and_weights(build(placement="uniform"), make_inputs())
    close(weights[2, 0, 0], [0.0, 0.25, 0.0, 0.25, 0.25, 0.0, 0.25], 1e-14)
    close(weights[0, 0, 0], [1 / 7] * 7, 1e-14)


def test_the_center_of_an_empty_sentence_is_0() -> None:
    attention, inputs = build(placement="local-p"), make_inputs()
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    output, _ = attention(inputs.query, memory)
    assert (output.extras["center"][3] == 0).all()


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_a_mask_that_is_not_boolean_is_refused(dtype: torch.dtype) -> None:
    attention, inputs = build("dot"), make_inputs("dot")
    with pytest.raises(ShapeError, match="keep"):
        attention(inputs.query, attention.prepare(inputs.keys, inputs.keep.to(dtype)))
    memory = attention.prepare(inputs.keys, inputs.keep)
    with pytest.raises(ShapeError, match="allowed is a mask of"):
        attention(inputs.query, memory, allowed=inputs.allowed.to(dtype))


def test_a_memory_that_outgrows_the_table_of_a_location_score_is_refused() -> None:
    attention, inputs = build("location", max_source_positions=7), make_inputs("location")
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    with pytest.raises(ShapeError, match="table of 7"):
        attention(inputs.query, memory.append(memory))


@pytest.mark.parametrize("mode", ["sample", "argmax", "expectation"])
def test_hard_attention_over_an_empty_source_gives_zeros(mode: str) -> None:
    attention, inputs = build(placement=f"hard {mode}"), make_inputs()
    memory = attention.prepare(inputs.keys[:, :0], inputs.keep[:, :0], inputs.values[:, :0])
    assert (attend(attention, inputs.query, memory)[0] == 0).all()


def test_the_window_of_local_p_is_2_d_plus_1_positions_in_bfloat16() -> None:
    dtype, count = torch.bfloat16, 600
    attention = build("general", placement="local-p", query=1, key=1, dtype=dtype, window=1)
    with torch.no_grad():
        attention.get_parameter("placement.outer.weight").fill_(3.0)
        attention.get_parameter("placement.inner.weight").fill_(1.0)
    memory = attention.prepare(torch.zeros(1, count, 1, dtype=dtype), torch.ones(1, count, dtype=torch.bool))
    output, _ = attention(torch.ones(1, 1, 1, dtype=dtype), memory, hooks=WEIGHTS)
    assert output.weights is not None
    attended = output.weights[0, 0, 0].nonzero().flatten()
    assert len(attended) == 3
    assert (attended.diff() == 1).all()


def test_float16_scores_that_overflow_are_not_nan() -> None:
    attention = build("dot", query=1, key=1, dtype=torch.float16)
    keys = torch.tensor([[[300.0], [300.0]]], dtype=torch.float16)
    context, _, _ = attend(attention, keys[:, :1], attention.prepare(keys, mask("11")))
    assert context.flatten().tolist() == [300.0]


def test_torchs_kernel_does_not_run_under_autocast_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attention, inputs = build("dot", dtype=torch.float32), make_inputs("dot").to(torch.float32)

    def kernel(query: torch.Tensor, *_: object, **__: object) -> torch.Tensor:
        raise AssertionError("the kernel was called")

    monkeypatch.setattr("heedful.attention.dispatch.F.scaled_dot_product_attention", kernel)
    with torch.autocast("cpu", torch.bfloat16):
        attention(inputs.query, attention.prepare(inputs.keys, inputs.keep))


def test_infinite_weights_of_an_edit_are_named_as_such() -> None:
    attention, inputs = build(), make_inputs()
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    weights = torch.zeros(5, 3, 1, 7, dtype=torch.float64)
    weights[0, 0, 0, 0] = torch.inf
    with pytest.raises(ShapeError) as error:
        attention(inputs.query, memory, hooks=Hooks(edit=lambda site, output, at: Override(weights)))
    assert "not finite" in str(error.value)


def test_the_lstmn_skips_padding_between_words() -> None:
    cell = randomize_parameters(LSTMNCell(3, 2)).double()
    x = torch.randn(1, 4, 3, generator=rng(), dtype=torch.float64)
    state, short = cell.initial_state(x[:, 0]), cell.initial_state(x[:, 0])
    for t, kept in enumerate(mask("1101")[0].tolist()):
        state, _ = cell(x[:, t], state, torch.tensor([kept]))
        short = cell(x[:, t], short)[0] if kept else short
    close(state.hidden, short.hidden, 1e-12)


@pytest.mark.parametrize("normalizer", ["softmax", "sparsemax", "entmax15"])
def test_float16_scores_that_overflow_downwards_are_not_nan(normalizer: str) -> None:
    attention = build("dot", normalizer, query=1, key=1, dtype=torch.float16)
    keys = torch.tensor([[[-300.0], [-300.0], [1.0]]], dtype=torch.float16)
    context, _, _ = attend(attention, -keys[:, :1], attention.prepare(keys, mask("110")), hooks=WEIGHTS)
    assert context.flatten().tolist() == pytest.approx([-300.0])


@pytest.mark.parametrize("mode", ["sample", "argmax", "expectation"])
def test_hard_attention_over_an_empty_source_reports_the_usual_extras(mode: str) -> None:
    attention, inputs = build(placement=f"hard {mode}"), make_inputs()
    memory = attention.prepare(inputs.keys[:, :0], inputs.keep[:, :0], inputs.values[:, :0])
    output, _ = attention(inputs.query, memory)
    assert set(output.extras) == {"alpha", "sample", "logp", "entropy"}
    assert output.extras["sample"].flatten().tolist() == [-1] * 15
    assert not output.extras["logp"].any()
    assert not output.extras["entropy"].any()


@pytest.mark.parametrize("placement", ["local-m", "local-p"])
def test_the_tail_of_an_appended_memory_is_ignored_as_that_of_a_whole_one(placement: str) -> None:
    attention, inputs = (
        build("location", placement=placement, max_source_positions=5, on_too_long="ignore"),
        make_inputs("location"),
    )
    full = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    parts = [
        attention.prepare(inputs.keys[:, part], inputs.keep[:, part], inputs.values[:, part])
        for part in (slice(4), slice(4, 7))
    ]
    grown, _, _ = attend(attention, inputs.query, parts[0].append(parts[1]), positions=inputs.positions)
    close(grown, attend(attention, inputs.query, full, positions=inputs.positions)[0], 1e-12)


@pytest.mark.parametrize("normalizer", ["sparsemax", "entmax15"])
@pytest.mark.parametrize("score", [1e9, -1e9])
def test_a_forbidden_key_takes_no_weight_from_a_huge_score(score: float, normalizer: str) -> None:
    weights = NORMALIZERS[normalizer](torch.tensor([[score, 0.0, 0.0]]), mask("100"))
    assert weights.tolist() == [[1.0, 0.0, 0.0]]

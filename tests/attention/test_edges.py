"""Edges where a first version went wrong: precision, empty sources, masks, padding on the tape."""

from __future__ import annotations

import pytest
import torch

from attention.helpers import SEEN, build, close, enliven, mask, rng, scene, see
from heedful.attention import NORMALISERS, Override, Watch
from heedful.errors import ShapeError
from heedful.layers.lstmn import LSTMNCell


def test_uniform_weights_are_of_the_precision_of_the_scores() -> None:
    _, weights = see(build(placement="uniform"), scene())
    close(weights[2, 0, 0], [0.0, 0.25, 0.0, 0.25, 0.25, 0.0, 0.25], 1e-14)
    close(weights[0, 0, 0], [1 / 7] * 7, 1e-14)


def test_an_empty_sentence_has_its_centre_at_0() -> None:
    attention, given = build(placement="local-p"), scene()
    memory = attention.prepare(given.keys, given.keep, given.values)
    _, look, _ = attention.look(given.query, memory)
    assert (look.extra["centre"][3] == 0).all()


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_a_mask_that_is_not_of_bools_is_refused(dtype: torch.dtype) -> None:
    attention, given = build("dot"), scene("dot")
    with pytest.raises(ShapeError, match="keep"):
        attention.look(given.query, attention.prepare(given.keys, given.keep.to(dtype)))
    memory = attention.prepare(given.keys, given.keep)
    with pytest.raises(ShapeError, match="allow is a mask of"):
        attention.look(given.query, memory, allow=given.allow.to(dtype))


def test_a_location_score_notices_a_memory_that_outgrew_its_table() -> None:
    attention, given = build("location", table=7), scene("location")
    memory = attention.prepare(given.keys, given.keep, given.values)
    with pytest.raises(ShapeError, match="table of 7"):
        attention.look(given.query, memory.append(memory))


@pytest.mark.parametrize("how", ["sample", "argmax", "expectation"])
def test_hard_attention_over_no_positions_reads_zeros_like_every_other(how: str) -> None:
    attention, given = build(placement=f"hard {how}"), scene()
    memory = attention.prepare(given.keys[:, :0], given.keep[:, :0], given.values[:, :0])
    assert (attention.look(given.query, memory)[0] == 0).all()


def test_the_window_of_local_p_is_2_d_plus_1_positions_in_bfloat16() -> None:
    dtype, count = torch.bfloat16, 600
    attention = build("general", placement="local-p", query=1, key=1, dtype=dtype, window=1)
    with torch.no_grad():
        attention.get_parameter("placement.outer.weight").fill_(3.0)
        attention.get_parameter("placement.inner.weight").fill_(1.0)
    memory = attention.prepare(torch.zeros(1, count, 1, dtype=dtype), torch.ones(1, count, dtype=torch.bool))
    _, look, _ = attention.look(torch.ones(1, 1, 1, dtype=dtype), memory, watch=SEEN)
    assert look.weights is not None
    read = look.weights[0, 0, 0].nonzero().flatten()
    assert len(read) == 3
    assert (read.diff() == 1).all()


def test_float16_scores_that_overflow_are_not_nan() -> None:
    attention = build("dot", query=1, key=1, dtype=torch.float16)
    keys = torch.tensor([[[300.0], [300.0]]], dtype=torch.float16)
    context, _, _ = attention.look(keys[:, :1], attention.prepare(keys, mask("11")))
    assert context.flatten().tolist() == [300.0]


def test_the_kernel_is_not_trusted_with_half_precision_under_autocast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attention, given = build("dot", dtype=torch.float32), scene("dot").to(torch.float32)

    def kernel(query: torch.Tensor, *_: object, **__: object) -> torch.Tensor:
        raise AssertionError("the kernel was called")

    monkeypatch.setattr("heedful.attention.attention.F.scaled_dot_product_attention", kernel)
    with torch.autocast("cpu", torch.bfloat16):
        attention.look(given.query, attention.prepare(given.keys, given.keep))


def test_an_edit_is_told_what_is_wrong_with_it() -> None:
    attention, given = build(), scene()
    memory = attention.prepare(given.keys, given.keep, given.values)
    weights = torch.zeros(5, 3, 1, 7, dtype=torch.float64)
    weights[0, 0, 0, 0] = torch.inf
    with pytest.raises(ShapeError) as refused:
        attention.look(given.query, memory, watch=Watch(edit=lambda site, look, at: Override(weights)))
    assert "may not be read" not in str(refused.value)


def test_padding_between_words_is_not_there_for_the_lstmn() -> None:
    cell = enliven(LSTMNCell(3, 2)).double()
    x = torch.randn(1, 4, 3, generator=rng(), dtype=torch.float64)
    state, short = cell.start(x[:, 0]), cell.start(x[:, 0])
    for t, kept in enumerate(mask("1101")[0].tolist()):
        state, _ = cell(x[:, t], state, torch.tensor([kept]))
        short = cell(x[:, t], short)[0] if kept else short
    close(state.hidden, short.hidden, 1e-12)


@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax", "entmax15"])
def test_float16_scores_that_overflow_downwards_are_not_nan(normaliser: str) -> None:
    attention = build("dot", normaliser, query=1, key=1, dtype=torch.float16)
    keys = torch.tensor([[[-300.0], [-300.0], [1.0]]], dtype=torch.float16)
    context, _, _ = attention.look(-keys[:, :1], attention.prepare(keys, mask("110")), watch=SEEN)
    assert context.flatten().tolist() == pytest.approx([-300.0])


@pytest.mark.parametrize("how", ["sample", "argmax", "expectation"])
def test_hard_attention_over_no_positions_records_what_it_always_records(how: str) -> None:
    attention, given = build(placement=f"hard {how}"), scene()
    memory = attention.prepare(given.keys[:, :0], given.keep[:, :0], given.values[:, :0])
    _, look, _ = attention.look(given.query, memory)
    assert set(look.extra) == {"alpha", "sample", "logp", "entropy"}
    assert look.extra["sample"].flatten().tolist() == [-1] * 15
    assert not look.extra["logp"].any()
    assert not look.extra["entropy"].any()


@pytest.mark.parametrize("placement", ["local-m", "local-p"])
def test_ignoring_the_tail_of_an_appended_memory_is_ignoring_it_at_once(placement: str) -> None:
    attention, given = build("location", placement=placement, table=5, longer="ignore"), scene("location")
    whole = attention.prepare(given.keys, given.keep, given.values)
    parts = [
        attention.prepare(given.keys[:, part], given.keep[:, part], given.values[:, part])
        for part in (slice(4), slice(4, 7))
    ]
    grown, _, _ = attention.look(given.query, parts[0].append(parts[1]), at=given.at)
    close(grown, attention.look(given.query, whole, at=given.at)[0], 1e-12)


@pytest.mark.parametrize("normaliser", ["sparsemax", "entmax15"])
@pytest.mark.parametrize("score", [1e9, -1e9])
def test_a_forbidden_key_takes_no_mass_from_a_huge_score(score: float, normaliser: str) -> None:
    weights = NORMALISERS[normaliser].apply(torch.tensor([[score, 0.0, 0.0]]), mask("100"))
    assert weights.tolist() == [[1.0, 0.0, 0.0]]

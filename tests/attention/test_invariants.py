"""Properties that hold for all numbers; hypothesis searches for counterexamples."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from attention.helpers import (
    BETA,
    COMBINATIONS,
    COVERED,
    FULL,
    KEY,
    NORMALIZERS,
    SCORE_NAMES,
    Inputs,
    attend,
    build,
    close,
    context_and_weights,
    query_size,
    rng,
)
from heedful.attention import (
    Additive,
    Attention,
    Concat,
    Detail,
    Dot,
    Hooks,
    Override,
    extent,
    lengths_to_keep,
    weighted_sum,
    without_last,
)

pytestmark = pytest.mark.usefixtures("as_users_run")  # shapes are checked in `test_contract.py`
searched = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # that the shape checker is off
)
searched_less = settings(searched, max_examples=8)
PLACED = sorted({(normalizer, placement) for _, normalizer, placement in COMBINATIONS})
CONTENT = [name for name in SCORE_NAMES if name != "location"]
score_values = st.floats(-60.0, 60.0, allow_subnormal=False)
rows = st.lists(st.tuples(score_values, st.booleans()), min_size=1, max_size=11)
seeds = st.integers(0, 2**32 - 1)
widths = st.integers(1, 13)


def random_inputs(score: str, seed: int, width: int) -> Inputs:
    """Return two sentences of one width with a mask that may forbid every key."""
    r = rng(seed)

    def randn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=r, dtype=torch.float64)

    keep = torch.rand(2, width, generator=r) < torch.rand(2, 1, generator=r)
    positions = torch.randint(0, width + 2, (2, 3), generator=r)
    allowed = torch.ones(2, 3, width, dtype=torch.bool)
    query = randn(2, 3, query_size(score))
    return Inputs(query, randn(2, width, KEY), randn(2, width, 5), keep, positions, allowed)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
@searched
@given(row=rows)
def test_weights_are_not_negative_zero_outside_the_mask_and_of_the_declared_mass(
    normalizer: str, row: list[tuple[float, bool]]
) -> None:
    scores = torch.tensor([[score for score, _ in row]], dtype=torch.float64)
    keep = torch.tensor([[kept for _, kept in row]])
    normalize = NORMALIZERS[normalizer]
    weights = normalize(scores, keep)
    assert (weights >= 0).all()
    assert (weights[~keep] == 0).all()
    if not keep.any():
        assert weights.sum() == 0
    elif normalize.mass == "one":
        close(weights.sum(), 1.0, 1e-9)
    else:
        assert (normalizer, normalize.mass) == ("smoothed-softmax", "free")
        close(weights.sum(), scores[keep].exp().sum() ** 0.5, 1e-9)  # the default beta is 0.5


@pytest.mark.parametrize(("normalizer", "placement"), PLACED)
@searched_less
@given(seed=seeds, width=widths)
def test_a_site_declares_what_its_weights_sum_to(normalizer: str, placement: str, seed: int, width: int) -> None:
    inputs = random_inputs("dot", seed, width)
    attention = build("dot", normalizer, placement)
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    output, _ = attention(inputs.query, memory, positions=inputs.positions, hooks=FULL, rng=rng(seed))
    assert output.weights is not None
    assert output.scores is not None
    weights, keep = output.weights[:, :, 0], inputs.keep[:, None].expand(-1, 3, -1)
    assert (weights >= 0).all()
    assert (weights[~keep] == 0).all()
    total, some = weights.sum(dim=-1), (weights > 0).any(dim=-1)
    if placement not in ("local-m", "local-p", "local-p renormalized"):
        # A window may lie over a hole in the mask; every other placement uses all readable keys.
        assert (some == keep.any(dim=-1)).all()
    match attention.site.mass:
        case "one":
            close(total, some.double(), 1e-6)
        case "at_most_one":
            assert placement == "local-p"
            assert (total <= 1 + 1e-12).all()
        case "free" if placement == "global":
            exp = (output.scores[:, :, 0].exp() * keep).sum(dim=-1)
            close(total, torch.where(some, exp ** (1 - BETA), 0.0), 1e-9)
        case "free":
            assert normalizer == "smoothed-softmax"


@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("score", CONTENT)
@searched_less
@given(seed=seeds, width=widths)
def test_attention_by_content_does_not_depend_on_the_order_of_keys(
    score: str, normalizer: str, seed: int, width: int
) -> None:
    inputs = random_inputs(score, seed, width)
    order = torch.randperm(width, generator=rng(seed))
    moved = inputs._replace(keys=inputs.keys[:, order], values=inputs.values[:, order], keep=inputs.keep[:, order])
    attention = build(score, normalizer)
    context, weights = context_and_weights(attention, inputs)
    moved_context, moved_weights = context_and_weights(attention, moved)
    close(moved_weights, weights[..., order])
    close(moved_context, context)


def test_attention_by_location_depends_on_positions_and_not_on_keys() -> None:
    inputs = random_inputs("location", 1, 7)._replace(keep=torch.ones(2, 7, dtype=torch.bool))
    attention = build("location")
    context, weights = context_and_weights(attention, inputs)
    order = torch.tensor([6, 0, 5, 1, 4, 2, 3])
    moved = inputs._replace(keys=inputs.keys[:, order], values=inputs.values[:, order])
    moved_context, moved_weights = context_and_weights(attention, moved)
    close(moved_weights, weights)  # keys moved under weights that stay
    assert not torch.allclose(moved_context, context)
    close(context_and_weights(attention, inputs._replace(keys=torch.full_like(inputs.keys, 1e3)))[1], weights)


@searched
@given(seed=seeds, width=widths)
def test_concat_is_additive_with_its_matrix_split(seed: int, width: int) -> None:
    inputs = random_inputs("concat", seed, width)
    concat, additive = build("concat"), build("additive")
    assert isinstance(concat.score, Concat)
    assert isinstance(additive.score, Additive)
    with torch.no_grad():
        matrix = concat.score.both.weight
        additive.score.query.weight.copy_(matrix[:, : inputs.query.shape[-1]])
        additive.score.key.weight.copy_(matrix[:, inputs.query.shape[-1] :])
        additive.score.v.copy_(concat.score.v)
    for one, other in zip(context_and_weights(concat, inputs), context_and_weights(additive, inputs), strict=True):
        close(one, other, 1e-12)


@pytest.mark.parametrize("normalizer", [n for n in NORMALIZERS if NORMALIZERS[n].mass == "one"])
@pytest.mark.parametrize("score", SCORE_NAMES)
@searched_less
@given(seed=seeds, width=widths)
def test_a_single_readable_key_gets_all_weight(score: str, normalizer: str, seed: int, width: int) -> None:
    inputs = random_inputs(score, seed, width)
    only = seed % width
    inputs = inputs._replace(keep=(torch.arange(width) == only).expand(2, -1))
    context, weights = context_and_weights(build(score, normalizer), inputs)
    assert weights[..., only].eq(1).all()
    assert torch.equal(context, inputs.values[:, only][:, None].expand_as(context))


def mix_values(values: Tensor) -> Tensor:
    weights = torch.tensor([0.0, 0.0, 0.5, 0.5], dtype=values.dtype).view(1, 1, 1, 4)
    return weighted_sum(weights, values[:, :, None])[:, :, 0]


def edited(values: Tensor) -> Tensor:
    attention = Attention(Dot(3, 3))
    weights = torch.tensor([0.0, 0.0, 0.5, 0.5], dtype=values.dtype).view(1, 1, 1, 4)
    memory = attention.prepare(values, torch.ones(1, 4, dtype=torch.bool))
    hooks = Hooks(Detail.NONE, edit=lambda site, output, at: Override(weights))
    return attend(attention, values[:, :1], memory, hooks=hooks)[0]


@pytest.mark.parametrize("run", [mix_values, edited], ids=["mix", "edit"])
@searched
@given(numbers=st.lists(st.floats(-1e6, 1e6), min_size=12, max_size=12))
def test_weights_0_0_half_half_give_the_mean_of_the_last_two_values(
    run: Callable[[Tensor], Tensor], numbers: list[float]
) -> None:
    values = torch.tensor(numbers, dtype=torch.float64).view(1, 4, 3)
    close(run(values)[0, 0], (values[0, 2] + values[0, 3]) / 2, 1e-14)


@searched
@given(kept=st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=4))
def test_masks_from_and_to_lengths(kept: list[list[bool]]) -> None:
    keep = torch.tensor(kept)
    lasts = [max((i for i, k in enumerate(row) if k), default=-1) for row in kept]
    assert extent(keep).tolist() == [last + 1 for last in lasts]
    shorter = [[k and i != last for i, k in enumerate(row)] for row, last in zip(kept, lasts, strict=True)]
    assert without_last(keep).tolist() == shorter
    lengths = torch.tensor([last + 1 for last in lasts])
    assert lengths_to_keep(lengths, 5).tolist() == [[i <= last for i in range(5)] for last in lasts]
    assert lengths_to_keep(lengths).shape[1] == max(lasts) + 1


def test_attention_is_sequential_only_with_coverage() -> None:
    assert [score for score in SCORE_NAMES if build(score).sequential] == [COVERED]

"""What must hold whatever the numbers are: hypothesis looks for a counterexample."""

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
    SCORE_NAMES,
    Scene,
    build,
    close,
    query_size,
    rng,
    see,
)
from heedful.attention import (
    NORMALISERS,
    Additive,
    Attention,
    Concat,
    Detail,
    Dot,
    Override,
    Watch,
    extent,
    lengths_to_keep,
    mix,
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
PLACED = sorted({(normaliser, placement) for _, normaliser, placement in COMBINATIONS})
CONTENT = [name for name in SCORE_NAMES if name != "location"]
score_values = st.floats(-60.0, 60.0, allow_subnormal=False)
rows = st.lists(st.tuples(score_values, st.booleans()), min_size=1, max_size=11)
seeds = st.integers(0, 2**32 - 1)
widths = st.integers(1, 13)


def drawn(score: str, seed: int, width: int) -> Scene:
    """Two sentences of one width with a mask that may close everything."""
    r = rng(seed)

    def randn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=r, dtype=torch.float64)

    keep = torch.rand(2, width, generator=r) < torch.rand(2, 1, generator=r)
    at = torch.randint(0, width + 2, (2, 3), generator=r)
    allow = torch.ones(2, 3, width, dtype=torch.bool)
    query = randn(2, 3, query_size(score))
    return Scene(query, randn(2, width, KEY), randn(2, width, 5), keep, at, allow)


@pytest.mark.parametrize("normaliser", NORMALISERS)
@searched
@given(row=rows)
def test_weights_are_not_negative_zero_outside_the_mask_and_of_the_declared_mass(
    normaliser: str, row: list[tuple[float, bool]]
) -> None:
    scores = torch.tensor([[score for score, _ in row]], dtype=torch.float64)
    keep = torch.tensor([[kept for _, kept in row]])
    entry = NORMALISERS[normaliser]
    weights = entry.apply(scores, keep)
    assert (weights >= 0).all()
    assert (weights[~keep] == 0).all()
    if not keep.any():
        assert weights.sum() == 0
    elif entry.mass == "one":
        close(weights.sum(), 1.0, 1e-9)
    else:
        assert (normaliser, entry.mass) == ("smoothed-softmax", "free")
        close(weights.sum(), scores[keep].exp().sum() ** 0.5, 1e-9)  # beta is 0.5 unless given


@pytest.mark.parametrize(("normaliser", "placement"), PLACED)
@searched_less
@given(seed=seeds, width=widths)
def test_a_site_declares_what_its_weights_sum_to(
    normaliser: str, placement: str, seed: int, width: int
) -> None:
    scene = drawn("dot", seed, width)
    attention = build("dot", normaliser, placement)
    memory = attention.prepare(scene.keys, scene.keep, scene.values)
    _, look, _ = attention.look(scene.query, memory, at=scene.at, watch=FULL, rng=rng(seed))
    assert look.weights is not None
    assert look.scores is not None
    weights, keep = look.weights[:, :, 0], scene.keep[:, None].expand(-1, 3, -1)
    assert (weights >= 0).all()
    assert (weights[~keep] == 0).all()
    total, some = weights.sum(dim=-1), (weights > 0).any(dim=-1)
    if placement not in ("local-m", "local-p", "local-p renormalised"):
        # A window may lie over a hole in the mask; every other placement reads where it can.
        assert (some == keep.any(dim=-1)).all()
    match attention.site.mass:
        case "one":
            close(total, some.double(), 1e-6)
        case "at_most_one":
            assert placement == "local-p"
            assert (total <= 1 + 1e-12).all()
        case "free" if placement == "global":
            exp = (look.scores[:, :, 0].exp() * keep).sum(dim=-1)
            close(total, torch.where(some, exp ** (1 - BETA), 0.0), 1e-9)
        case "free":
            assert normaliser == "smoothed-softmax"


@pytest.mark.parametrize("normaliser", NORMALISERS)
@pytest.mark.parametrize("score", CONTENT)
@searched_less
@given(seed=seeds, width=widths)
def test_a_look_by_content_does_not_care_where_a_key_stands(
    score: str, normaliser: str, seed: int, width: int
) -> None:
    scene = drawn(score, seed, width)
    order = torch.randperm(width, generator=rng(seed))
    moved = scene._replace(
        keys=scene.keys[:, order], values=scene.values[:, order], keep=scene.keep[:, order]
    )
    attention = build(score, normaliser)
    context, weights = see(attention, scene)
    moved_context, moved_weights = see(attention, moved)
    close(moved_weights, weights[..., order])
    close(moved_context, context)


def test_a_look_by_location_cares_where_a_key_stands_and_not_what_it_is() -> None:
    scene = drawn("location", 1, 7)._replace(keep=torch.ones(2, 7, dtype=torch.bool))
    attention = build("location")
    context, weights = see(attention, scene)
    order = torch.tensor([6, 0, 5, 1, 4, 2, 3])
    moved = scene._replace(keys=scene.keys[:, order], values=scene.values[:, order])
    moved_context, moved_weights = see(attention, moved)
    close(moved_weights, weights)  # keys moved under weights that stay
    assert not torch.allclose(moved_context, context)
    close(see(attention, scene._replace(keys=torch.full_like(scene.keys, 1e3)))[1], weights)


@searched
@given(seed=seeds, width=widths)
def test_concat_is_additive_with_its_matrix_split(seed: int, width: int) -> None:
    scene = drawn("concat", seed, width)
    concat, additive = build("concat"), build("additive")
    assert isinstance(concat.score, Concat)
    assert isinstance(additive.score, Additive)
    with torch.no_grad():
        whole = concat.score.both.weight
        additive.score.query.weight.copy_(whole[:, : scene.query.shape[-1]])
        additive.score.key.weight.copy_(whole[:, scene.query.shape[-1] :])
        additive.score.v.copy_(concat.score.v)
    for one, other in zip(see(concat, scene), see(additive, scene), strict=True):
        close(one, other, 1e-12)


@pytest.mark.parametrize("normaliser", [n for n in NORMALISERS if NORMALISERS[n].mass == "one"])
@pytest.mark.parametrize("score", SCORE_NAMES)
@searched_less
@given(seed=seeds, width=widths)
def test_one_readable_key_is_read_alone(score: str, normaliser: str, seed: int, width: int) -> None:
    scene = drawn(score, seed, width)
    only = seed % width
    scene = scene._replace(keep=(torch.arange(width) == only).expand(2, -1))
    context, weights = see(build(score, normaliser), scene)
    assert weights[..., only].eq(1).all()
    assert torch.equal(context, scene.values[:, only][:, None].expand_as(context))


def lectured(values: Tensor) -> Tensor:
    weights = torch.tensor([0.0, 0.0, 0.5, 0.5], dtype=values.dtype).view(1, 1, 1, 4)
    return mix(weights, values[:, :, None])[:, :, 0]


def edited(values: Tensor) -> Tensor:
    attention = Attention(Dot(3, 3))
    weights = torch.tensor([0.0, 0.0, 0.5, 0.5], dtype=values.dtype).view(1, 1, 1, 4)
    memory = attention.prepare(values, torch.ones(1, 4, dtype=torch.bool))
    watch = Watch(Detail.NONE, edit=lambda site, look, at: Override(weights))
    return attention.look(values[:, :1], memory, watch=watch)[0]


@pytest.mark.parametrize("read", [lectured, edited], ids=["mix", "edit"])
@searched
@given(numbers=st.lists(st.floats(-1e6, 1e6), min_size=12, max_size=12))
def test_weights_0_0_half_half_give_the_mean_of_the_last_two_values(
    read: Callable[[Tensor], Tensor], numbers: list[float]
) -> None:
    values = torch.tensor(numbers, dtype=torch.float64).view(1, 4, 3)
    close(read(values)[0, 0], (values[0, 2] + values[0, 3]) / 2, 1e-14)


@searched
@given(kept=st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=4))
def test_masks(kept: list[list[bool]]) -> None:
    keep = torch.tensor(kept)
    lasts = [max((i for i, k in enumerate(row) if k), default=-1) for row in kept]
    assert extent(keep).tolist() == [last + 1 for last in lasts]
    shorter = [[k and i != last for i, k in enumerate(row)] for row, last in zip(kept, lasts, strict=True)]
    assert without_last(keep).tolist() == shorter
    lengths = torch.tensor([last + 1 for last in lasts])
    assert lengths_to_keep(lengths, 5).tolist() == [[i <= last for i in range(5)] for last in lasts]
    assert lengths_to_keep(lengths).shape[1] == max(lasts) + 1


def test_the_sequential_site_is_the_one_with_coverage() -> None:
    assert [score for score in SCORE_NAMES if build(score).sequential] == [COVERED]

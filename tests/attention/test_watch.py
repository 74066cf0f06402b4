"""Watching: what is recorded, where, and what an edit may do."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from attention.helpers import COVERED, SCORE_NAMES, Scene, build, close, rng, scene
from heedful.attention import (
    Attention,
    Carry,
    Detail,
    Look,
    Override,
    Watch,
    coverage_loss,
    mix,
)
from heedful.errors import ShapeError


def look_at(
    attention: Attention, given: Scene, watch: Watch, carry: Carry | None = None
) -> tuple[Tensor, Look, Carry]:
    memory = attention.prepare(given.keys, given.keep, given.values)
    carry = attention.start(memory, 3) if carry is None else carry
    return attention.look(given.query, memory, at=given.at, carry=carry, watch=watch, rng=rng())


def favourite(given: Scene) -> Tensor:
    """Weights on readable positions that no mechanism would give: they sum to 2."""
    weights = torch.zeros(5, 3, 1, 7, dtype=torch.float64)
    for sentence, positions in enumerate(given.keep):
        for position in positions.nonzero()[-1:]:
            weights[sentence, :, :, position] = 2.0
    return weights


@pytest.mark.parametrize("score", SCORE_NAMES)
def test_each_level_of_detail_records_what_it_says(score: str) -> None:
    attention, given = build(score), scene(score)
    contexts = []
    for detail in Detail:
        context, look, _ = look_at(attention, given, Watch(detail))
        contexts.append(context)
        assert (look.weights is not None) == (detail >= Detail.WEIGHTS)
        assert (look.scores is not None) == (detail >= Detail.FULL)
    for context in contexts[1:]:
        close(context, contexts[0], 1e-12)


@pytest.mark.parametrize("detail", Detail)
def test_what_training_needs_is_recorded_at_every_level(detail: Detail) -> None:
    given = scene()
    _, look, _ = look_at(build(placement="hard sample"), given, Watch(detail))
    assert set(look.extra) == {"alpha", "sample", "logp", "entropy"}
    _, look, _ = look_at(build(COVERED), given, Watch(detail))
    assert set(look.extra) == {"coverage_loss"}


def test_only_the_named_sites_are_recorded() -> None:
    attention, given = build(), scene()
    assert attention.site.id == "cross"
    for sites, seen in (
        (None, True),
        ({"cross"}, True),
        ({"cross", "self"}, True),
        ({"self"}, False),
        (set(), False),
    ):
        watch = Watch(Detail.FULL, None if sites is None else frozenset(sites))
        _, look, _ = look_at(attention, given, watch)
        assert (look.weights is not None) == (look.scores is not None) == seen


@pytest.mark.parametrize("detail", Detail)
@pytest.mark.parametrize("score", ["additive", "scaled-dot"])
def test_an_edit_is_told_where_what_and_when_and_its_weights_are_used(score: str, detail: Detail) -> None:
    attention, given = build(score), scene(score)
    own_context, own, _ = look_at(attention, given, Watch(Detail.FULL))
    told: list[tuple[str, Look, Tensor]] = []

    def edit(site: str, look: Look, at: Tensor) -> Override:
        told.append((site, look, at))
        return Override(favourite(given))

    context, look, _ = look_at(attention, given, Watch(detail, edit=edit))
    [(site, seen, at)] = told
    assert site == "cross"
    assert torch.equal(at, given.at)
    assert seen.weights is not None
    assert seen.scores is not None
    assert own.weights is not None
    assert own.scores is not None
    close(seen.weights, own.weights, 0.0)
    close(seen.scores, own.scores, 0.0)
    # Taken as they are, though they sum to 2: an edit is never renormalised.
    close(context, mix(favourite(given), given.values[:, :, None])[:, :, 0], 1e-14)
    assert not torch.allclose(context, own_context)
    if look.weights is not None:
        assert torch.equal(look.weights, favourite(given))
    if look.scores is not None:
        close(look.scores, own.scores, 0.0)


def test_an_edit_sees_what_the_placement_recorded() -> None:
    told: list[Look] = []
    watch = Watch(edit=lambda site, look, at: told.append(look))
    _, look, _ = look_at(build(placement="hard argmax"), scene(), watch)
    assert set(look.extra) == {"alpha", "sample", "logp", "entropy"}
    assert set(told[0].extra) == {*look.extra, "open"}, "and what each query may read"


@pytest.mark.parametrize("detail", Detail)
@pytest.mark.parametrize("score", ["additive", "dot", COVERED])
def test_an_edit_that_gives_nothing_changes_nothing(score: str, detail: Detail) -> None:
    attention, given = build(score), scene(score)
    plain = look_at(attention, given, Watch(detail))
    edited = look_at(attention, given, Watch(detail, edit=lambda site, look, at: None))
    close(edited[0], plain[0], 1e-12)
    for mine, theirs in ((edited[1].weights, plain[1].weights), (edited[1].scores, plain[1].scores)):
        assert (mine is None) == (theirs is None)
        if mine is not None and theirs is not None:
            close(mine, theirs, 0.0)
    assert set(edited[2]) == set(plain[2])


def test_edited_weights_are_carried_into_coverage() -> None:
    attention, given = build(COVERED), scene()
    memory = attention.prepare(given.keys, given.keep, given.values)
    edited = favourite(given)
    watch = Watch(edit=lambda site, look, at: Override(edited))
    _, look, carry = look_at(attention, given, watch)
    assert torch.equal(carry["coverage"], edited)
    assert (look.extra["coverage_loss"] == 0).all()
    _, look, carry = attention.look(given.query, memory, at=given.at, carry=carry, watch=watch)
    assert torch.equal(carry["coverage"], edited + edited)
    assert torch.equal(look.extra["coverage_loss"], coverage_loss(edited, edited))


def test_an_edit_speaks_for_every_head() -> None:
    given = scene()
    attention = build("scaled-dot", query=10, key=11, value=13, heads=5)
    memory = attention.prepare(given.keys, given.keep, given.values)
    weights = favourite(given).repeat(1, 1, 5, 1)
    weights[:, :, 3] = 0.0
    weights[0, 0] = 0.0  # told to read nothing at all: zeros, not the bias of the join
    query = torch.randn(5, 3, 10, generator=rng(), dtype=torch.float64)
    context, _, _ = attention.look(query, memory, watch=Watch(edit=lambda site, look, at: Override(weights)))
    assert attention.heads is not None
    joined = attention.heads.join(mix(weights, memory.values))
    close(context, torch.where(weights.sum(dim=(2, 3))[..., None] > 0, joined, 0.0), 1e-14)
    assert not context[0, 0].any()


@pytest.mark.usefixtures("as_users_run")
def test_an_edit_of_another_shape_is_refused() -> None:
    attention, given = build(), scene()
    for shape in ((5, 3, 1, 6), (5, 3, 2, 7), (1, 3, 1, 7), (5, 3, 7)):
        wrong = torch.zeros(shape, dtype=torch.float64)
        watch = Watch(edit=lambda site, look, at, wrong=wrong: Override(wrong))  # type: ignore[misc]
        with pytest.raises(ShapeError, match=r"edit at cross has shape \(.*\).*asks for \(5, 3, 1, 7\)"):
            look_at(attention, given, watch)


def test_an_edit_that_reads_what_may_not_be_read_is_refused() -> None:
    attention, given = build(), scene()
    memory = attention.prepare(given.keys, given.keep, given.values)
    for where, allow in (((1, 0, 0, 5), None), ((0, 2, 0, 0), given.allow)):  # padding; a further mask
        weights = favourite(given)
        weights[0, 2] = 0.0
        weights[where] = 1e-30
        watch = Watch(edit=lambda site, look, at, w=weights: Override(w))  # type: ignore[misc]
        with pytest.raises(ShapeError, match="edit at cross puts weight on positions that may not be read"):
            attention.look(given.query, memory, allow=allow, watch=watch)


def test_edited_weights_come_in_the_dtype_of_the_look() -> None:
    given = scene().to(torch.float32)
    watch = Watch(Detail.WEIGHTS, edit=lambda site, look, at: Override(favourite(given)))
    context, look, _ = look_at(build(dtype=torch.float32), given, watch)
    assert look.weights is not None
    assert context.dtype == look.weights.dtype == torch.float32


def test_gradients_pass_through_an_edit() -> None:
    """An edit that scales the look's own weights scales its gradient."""
    given = scene()
    query = given.query.clone().requires_grad_()
    attention = build()

    def twice(site: str, look: Look, at: Tensor) -> Override:
        assert look.weights is not None
        return Override(look.weights * 2)

    own, doubled = (
        look_at(attention, given._replace(query=query), watch)[0] for watch in (Watch(), Watch(edit=twice))
    )
    (gradient,) = torch.autograd.grad(own.sum(), query)
    (twofold,) = torch.autograd.grad(doubled.sum(), query)
    close(twofold, gradient * 2)

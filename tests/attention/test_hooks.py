"""Hooks: what is recorded, at which sites, and what an edit may do."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from attention.helpers import COVERED, SCORE_NAMES, Inputs, attend, build, close, make_inputs, rng
from heedful.attention import (
    Attention,
    AttentionOutput,
    Carry,
    Detail,
    Hooks,
    Override,
    coverage_loss,
    weighted_sum,
)
from heedful.errors import ShapeError


def run_attention(
    attention: Attention, inputs: Inputs, hooks: Hooks, carry: Carry | None = None
) -> tuple[Tensor, AttentionOutput, Carry]:
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    carry = attention.initial_carry(memory, 3) if carry is None else carry
    return attend(attention, inputs.query, memory, positions=inputs.positions, carry=carry, hooks=hooks, rng=rng())


def edited_weights(inputs: Inputs) -> Tensor:
    """Return weights on readable positions that no mechanism would give: they sum to 2."""
    weights = torch.zeros(5, 3, 1, 7, dtype=torch.float64)
    for sentence, positions in enumerate(inputs.keep):
        for position in positions.nonzero()[-1:]:
            weights[sentence, :, :, position] = 2.0
    return weights


@pytest.mark.parametrize("score", SCORE_NAMES)
def test_each_level_of_detail_records_what_it_says(score: str) -> None:
    attention, inputs = build(score), make_inputs(score)
    contexts = []
    for detail in Detail:
        context, output, _ = run_attention(attention, inputs, Hooks(detail))
        contexts.append(context)
        assert (output.weights is not None) == (detail >= Detail.WEIGHTS)
        assert (output.scores is not None) == (detail >= Detail.FULL)
    for context in contexts[1:]:
        close(context, contexts[0], 1e-12)


@pytest.mark.parametrize("detail", Detail)
def test_extras_are_reported_at_every_level_of_detail(detail: Detail) -> None:
    inputs = make_inputs()
    _, output, _ = run_attention(build(placement="hard sample"), inputs, Hooks(detail))
    assert set(output.extras) == {"alpha", "sample", "logp", "entropy"}
    _, output, _ = run_attention(build(COVERED), inputs, Hooks(detail))
    assert set(output.extras) == {"coverage_loss"}


def test_only_the_named_sites_are_recorded() -> None:
    attention, inputs = build(), make_inputs()
    assert attention.site.id == "cross"
    for sites, recorded in (
        (None, True),
        ({"cross"}, True),
        ({"cross", "self"}, True),
        ({"self"}, False),
        (set(), False),
    ):
        hooks = Hooks(Detail.FULL, None if sites is None else frozenset(sites))
        _, output, _ = run_attention(attention, inputs, hooks)
        assert (output.weights is not None) == (output.scores is not None) == recorded


@pytest.mark.parametrize("detail", Detail)
@pytest.mark.parametrize("score", ["additive", "scaled-dot"])
def test_an_edit_receives_site_output_and_positions_and_its_weights_are_used(score: str, detail: Detail) -> None:
    attention, inputs = build(score), make_inputs(score)
    own_context, own, _ = run_attention(attention, inputs, Hooks(Detail.FULL))
    calls: list[tuple[str, AttentionOutput, Tensor]] = []

    def edit(site: str, output: AttentionOutput, at: Tensor) -> Override:
        calls.append((site, output, at))
        return Override(edited_weights(inputs))

    context, output, _ = run_attention(attention, inputs, Hooks(detail, edit=edit))
    [(site, record, positions)] = calls
    assert site == "cross"
    assert torch.equal(positions, inputs.positions)
    assert record.weights is not None
    assert record.scores is not None
    assert own.weights is not None
    assert own.scores is not None
    close(record.weights, own.weights, 0.0)
    close(record.scores, own.scores, 0.0)
    # Used as they are, though they sum to 2: an edit is never renormalized.
    close(context, weighted_sum(edited_weights(inputs), inputs.values[:, :, None])[:, :, 0], 1e-14)
    assert not torch.allclose(context, own_context)
    if output.weights is not None:
        assert torch.equal(output.weights, edited_weights(inputs))
    if output.scores is not None:
        close(output.scores, own.scores, 0.0)


def test_an_edit_sees_what_the_placement_recorded() -> None:
    calls: list[AttentionOutput] = []
    hooks = Hooks(edit=lambda site, output, at: calls.append(output))
    _, output, _ = run_attention(build(placement="hard argmax"), make_inputs(), hooks)
    assert set(output.extras) == {"alpha", "sample", "logp", "entropy"}
    assert set(calls[0].extras) == {*output.extras, "allowed"}, "and what each query may read"


@pytest.mark.parametrize("detail", Detail)
@pytest.mark.parametrize("score", ["additive", "dot", COVERED])
def test_an_edit_that_returns_none_changes_nothing(score: str, detail: Detail) -> None:
    attention, inputs = build(score), make_inputs(score)
    plain = run_attention(attention, inputs, Hooks(detail))
    edited = run_attention(attention, inputs, Hooks(detail, edit=lambda site, output, at: None))
    close(edited[0], plain[0], 1e-12)
    for actual, expected in ((edited[1].weights, plain[1].weights), (edited[1].scores, plain[1].scores)):
        assert (actual is None) == (expected is None)
        if actual is not None and expected is not None:
            close(actual, expected, 0.0)
    assert set(edited[2]) == set(plain[2])


def test_edited_weights_are_carried_into_coverage() -> None:
    attention, inputs = build(COVERED), make_inputs()
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    edited = edited_weights(inputs)
    hooks = Hooks(edit=lambda site, output, at: Override(edited))
    _, output, carry = run_attention(attention, inputs, hooks)
    assert torch.equal(carry["coverage"], edited)
    assert (output.extras["coverage_loss"] == 0).all()
    output, carry = attention(inputs.query, memory, positions=inputs.positions, carry=carry, hooks=hooks)
    assert torch.equal(carry["coverage"], edited + edited)
    assert torch.equal(output.extras["coverage_loss"], coverage_loss(edited, edited))


def test_an_edit_sets_the_weights_of_every_head() -> None:
    inputs = make_inputs()
    attention = build("scaled-dot", query=10, key=11, value=13, heads=5)
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    weights = edited_weights(inputs).repeat(1, 1, 5, 1)
    weights[:, :, 3] = 0.0
    weights[0, 0] = 0.0  # no weight at all: zeros, not the bias of the output projection
    query = torch.randn(5, 3, 10, generator=rng(), dtype=torch.float64)
    context, _, _ = attend(attention, query, memory, hooks=Hooks(edit=lambda site, output, at: Override(weights)))
    assert attention.heads is not None
    joined = attention.heads.join(weighted_sum(weights, memory.values))
    close(context, torch.where(weights.sum(dim=(2, 3))[..., None] > 0, joined, 0.0), 1e-14)
    assert not context[0, 0].any()


@pytest.mark.usefixtures("as_users_run")
def test_an_edit_of_another_shape_is_refused() -> None:
    attention, inputs = build(), make_inputs()
    for shape in ((5, 3, 1, 6), (5, 3, 2, 7), (1, 3, 1, 7), (5, 3, 7)):
        wrong = torch.zeros(shape, dtype=torch.float64)
        hooks = Hooks(edit=lambda site, output, at, wrong=wrong: Override(wrong))  # type: ignore[misc]
        with pytest.raises(ShapeError, match=r"edit at cross has shape \(.*\).*needs \(5, 3, 1, 7\)"):
            run_attention(attention, inputs, hooks)


def test_an_edit_with_weight_on_forbidden_keys_is_refused() -> None:
    attention, inputs = build(), make_inputs()
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    for where, allowed in (((1, 0, 0, 5), None), ((0, 2, 0, 0), inputs.allowed)):  # padding; a further mask
        weights = edited_weights(inputs)
        weights[0, 2] = 0.0
        weights[where] = 1e-30
        hooks = Hooks(edit=lambda site, output, at, w=weights: Override(w))  # type: ignore[misc]
        with pytest.raises(ShapeError, match="edit at cross puts weight on positions that may not be attended to"):
            attention(inputs.query, memory, allowed=allowed, hooks=hooks)


def test_edited_weights_are_cast_to_the_dtype_of_the_call() -> None:
    inputs = make_inputs().to(torch.float32)
    hooks = Hooks(Detail.WEIGHTS, edit=lambda site, output, at: Override(edited_weights(inputs)))
    context, output, _ = run_attention(build(dtype=torch.float32), inputs, hooks)
    assert output.weights is not None
    assert context.dtype == output.weights.dtype == torch.float32


def test_gradients_pass_through_an_edit() -> None:
    """An edit that doubles the own weights doubles the gradient."""
    inputs = make_inputs()
    query = inputs.query.clone().requires_grad_()
    attention = build()

    def twice(site: str, output: AttentionOutput, at: Tensor) -> Override:
        assert output.weights is not None
        return Override(output.weights * 2)

    own, doubled = (
        run_attention(attention, inputs._replace(query=query), hooks)[0] for hooks in (Hooks(), Hooks(edit=twice))
    )
    (gradient,) = torch.autograd.grad(own.sum(), query)
    (twofold,) = torch.autograd.grad(doubled.sum(), query)
    close(twofold, gradient * 2)

"""The two ways to call attention: with plain tensors, and with a prepared memory."""

from __future__ import annotations

import pytest
import torch

from attention.helpers import COVERED, FULL, SCORE_NAMES, attend, build, close, make_inputs, mask
from heedful.attention import Attention, AttentionOutput, Detail, Dot, Hooks
from heedful.errors import ShapeError


@pytest.mark.parametrize("score", SCORE_NAMES)
def test_a_plain_call_returns_the_output_of_a_prepared_call_with_everything_recorded(score: str) -> None:
    attention, inputs = build(score), make_inputs(score)
    output = attention(inputs.query, inputs.keys, inputs.keep, inputs.values, positions=inputs.positions)
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    carry = attention.initial_carry(memory, inputs.query.shape[1])
    expected, _ = attention(inputs.query, memory, positions=inputs.positions, carry=carry, hooks=FULL)
    assert isinstance(output, AttentionOutput)
    for name in ("context", "weights", "scores", "query", "head_contexts"):
        close(getattr(output, name), getattr(expected, name), 0.0)
    assert set(output.extras) == set(expected.extras)


def test_a_plain_call_records_what_its_hooks_say() -> None:
    attention, inputs = build(), make_inputs()
    output = attention(inputs.query, inputs.keys, inputs.keep, hooks=Hooks(Detail.WEIGHTS))
    assert output.weights is not None
    assert output.scores is None


def test_without_a_mask_every_key_may_be_read() -> None:
    attention, inputs = build("dot"), make_inputs("dot")
    everything = mask("1111111").expand(5, 7)
    unmasked, masked = attention(inputs.query, inputs.keys), attention(inputs.query, inputs.keys, everything)
    assert unmasked.weights is not None
    close(unmasked.weights, masked.weights, 0.0)
    assert (unmasked.weights > 0).all()


def test_a_prepared_call_records_nothing_by_default_and_carries_coverage() -> None:
    attention, inputs = build(COVERED), make_inputs()
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    output, carry = attention(inputs.query, memory, carry=attention.initial_carry(memory, 3))
    assert output.context is not None
    assert (output.weights, output.scores, output.query, output.head_contexts) == (None, None, None, None)
    assert set(carry) == {"coverage"}


def test_the_context_is_joined_over_the_heads() -> None:
    inputs = make_inputs()
    attention = build("scaled-dot", query=10, key=11, value=13, heads=5)
    query = torch.randn(5, 3, 10, dtype=torch.float64)
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    context, output, _ = attend(attention, query, memory, hooks=FULL)
    assert output.head_contexts is not None
    assert output.head_contexts.shape == (5, 3, 5, 2)
    assert attention.heads is not None
    assert context.shape == (5, 3, 10)
    close(context[0], attention.heads.join(output.head_contexts)[0], 1e-12)


@pytest.mark.usefixtures("as_users_run")
def test_a_memory_takes_no_further_mask_or_values() -> None:
    attention = Attention(Dot(2, 2))
    keys, keep = torch.zeros(1, 3, 2), torch.ones(1, 3, dtype=torch.bool)
    memory = attention.prepare(keys, keep)
    for options in ({"keep": keep}, {"values": keys}):
        with pytest.raises(ShapeError, match=r"keep and values belong to prepare\(\)"):
            attention(keys[:, :1], memory, **options)  # type: ignore[call-overload]

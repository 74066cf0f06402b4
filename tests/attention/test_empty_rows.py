"""A query without any readable key gets zeros, never NaN: forward and backward, for every mechanism."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from attention.helpers import COMBINATIONS, DTYPES, FULL, Inputs, attend, build, make_inputs, rng
from heedful.attention import NO_HOOKS, Attention, Hooks

pytestmark = pytest.mark.usefixtures("as_users_run")  # shapes are checked in `test_contract.py`
EMPTY_SENTENCE, FORBIDDEN_QUERY = 3, (0, 2)


def backward(result: Tensor, module: nn.Module, inputs: Inputs) -> None:
    """Assert finite gradients everywhere, and none for keys and values that no query may read."""
    if result.requires_grad:
        result.float().sum().backward()  # type: ignore[no-untyped-call]
    for tensor in (inputs.query, inputs.keys, inputs.values, *module.parameters()):
        assert tensor.grad is None or tensor.grad.isfinite().all()
    for tensor in (inputs.keys, inputs.values):
        if tensor.grad is not None:
            assert (tensor.grad[~inputs.keep] == 0).all()


def run_attention(attention: Attention, inputs: Inputs, hooks: Hooks) -> Tensor:
    for tensor in (inputs.query, inputs.keys, inputs.values):
        tensor.requires_grad_()
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    carry = attention.initial_carry(memory, inputs.query.shape[1])
    parts: list[Tensor] = []
    for _ in range(2 if attention.sequential else 1):
        context, output, carry = attend(
            attention,
            inputs.query,
            memory,
            positions=inputs.positions,
            carry=carry,
            allowed=inputs.allowed,
            hooks=hooks,
            rng=rng(),
        )
        parts += [context, *(extra for extra in output.extras.values() if extra.is_floating_point())]
        for result in (context, output.weights):
            if result is not None:
                assert (result[EMPTY_SENTENCE] == 0).all()
                assert (result[FORBIDDEN_QUERY] == 0).all()
    flat = torch.cat([part.flatten() for part in parts])
    assert flat.isfinite().all()
    return flat


@pytest.mark.parametrize(("score", "normalizer", "placement"), COMBINATIONS)
def test_zeros_and_finite_gradients_in_every_dtype(score: str, normalizer: str, placement: str) -> None:
    for dtype in DTYPES:
        inputs = make_inputs(score).to(dtype)
        attention = build(score, normalizer, placement, dtype=dtype)
        result = run_attention(attention, inputs, FULL)
        assert result.dtype == dtype
        backward(result, attention, inputs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("score", ["dot", "scaled-dot"])
def test_zeros_and_finite_gradients_without_hooks(score: str, dtype: torch.dtype) -> None:
    """Where the dtype allows it, this is torch's fused kernel."""
    inputs = make_inputs(score).to(dtype)
    attention = build(score, dtype=dtype)
    backward(run_attention(attention, inputs, NO_HOOKS), attention, inputs)


@pytest.mark.parametrize("hooks", [NO_HOOKS, FULL], ids=["plain", "full"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_with_heads_an_empty_row_is_zeros_and_not_the_bias_of_the_output_projection(
    dtype: torch.dtype, hooks: Hooks
) -> None:
    inputs = make_inputs("scaled-dot").to(dtype)
    attention = build("scaled-dot", dtype=dtype, query=22, key=11, value=13, heads=2)
    inputs = inputs._replace(query=torch.cat([inputs.query, inputs.query], dim=-1))
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    inputs.query.requires_grad_()
    context, _, _ = attend(attention, inputs.query, memory, allowed=inputs.allowed, hooks=hooks)
    assert not context[EMPTY_SENTENCE].any()
    assert not context[FORBIDDEN_QUERY].any()
    backward(context, attention, inputs)


@pytest.mark.parametrize(("score", "normalizer", "placement"), COMBINATIONS)
def test_an_empty_source_gives_zeros(score: str, normalizer: str, placement: str) -> None:
    inputs = make_inputs(score)
    empty = inputs._replace(keys=inputs.keys[:, :0], values=inputs.values[:, :0], keep=inputs.keep[:, :0])
    attention = build(score, normalizer, placement)
    for hooks in (NO_HOOKS, FULL):
        memory = attention.prepare(empty.keys, empty.keep, empty.values)
        carry = attention.initial_carry(memory, 3)
        context, _, _ = attend(attention, empty.query, memory, positions=empty.positions, carry=carry, hooks=hooks)
        assert context.shape == (5, 3, 13)
        assert (context == 0).all()

"""A query that may read nothing gets zeros, never NaN: forward and backward, everywhere."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from attention.helpers import COMBINATIONS, DTYPES, FULL, Scene, build, rng, scene
from heedful.attention import PLAIN, Attention, Watch

pytestmark = pytest.mark.usefixtures("as_users_run")  # shapes are checked in `test_contract.py`
EMPTY_SENTENCE, FORBIDDEN_QUERY = 3, (0, 2)


def backward(result: Tensor, module: nn.Module, given: Scene) -> None:
    """Gradients everywhere, and none for the keys and values that nobody may read."""
    if result.requires_grad:
        result.float().sum().backward()  # type: ignore[no-untyped-call]
    for tensor in (given.query, given.keys, given.values, *module.parameters()):
        assert tensor.grad is None or tensor.grad.isfinite().all()
    for tensor in (given.keys, given.values):
        if tensor.grad is not None:
            assert (tensor.grad[~given.keep] == 0).all()


def looked_at(attention: Attention, given: Scene, watch: Watch) -> Tensor:
    for tensor in (given.query, given.keys, given.values):
        tensor.requires_grad_()
    memory = attention.prepare(given.keys, given.keep, given.values)
    carry = attention.start(memory, given.query.shape[1])
    parts: list[Tensor] = []
    for _ in range(2 if attention.sequential else 1):
        context, look, carry = attention.look(
            given.query, memory, at=given.at, carry=carry, allow=given.allow, watch=watch, rng=rng()
        )
        parts += [context, *(extra for extra in look.extra.values() if extra.is_floating_point())]
        for seen in (context, look.weights):
            if seen is not None:
                assert (seen[EMPTY_SENTENCE] == 0).all()
                assert (seen[FORBIDDEN_QUERY] == 0).all()
    result = torch.cat([part.flatten() for part in parts])
    assert result.isfinite().all()
    return result


@pytest.mark.parametrize(("score", "normaliser", "placement"), COMBINATIONS)
def test_zeros_and_finite_gradients_in_every_dtype(score: str, normaliser: str, placement: str) -> None:
    for dtype in DTYPES:
        given = scene(score).to(dtype)
        attention = build(score, normaliser, placement, dtype=dtype)
        result = looked_at(attention, given, FULL)
        assert result.dtype == dtype
        backward(result, attention, given)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("score", ["dot", "scaled-dot"])
def test_without_a_watch_too(score: str, dtype: torch.dtype) -> None:
    """Where the dtype allows it this is the fused kernel."""
    given = scene(score).to(dtype)
    attention = build(score, dtype=dtype)
    backward(looked_at(attention, given, PLAIN), attention, given)


@pytest.mark.parametrize("watch", [PLAIN, FULL], ids=["plain", "full"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_with_heads_who_reads_nothing_gets_zeros_and_not_the_bias_of_the_join(
    dtype: torch.dtype, watch: Watch
) -> None:
    given = scene("scaled-dot").to(dtype)
    attention = build("scaled-dot", dtype=dtype, query=22, key=11, value=13, heads=2)
    given = given._replace(query=torch.cat([given.query, given.query], dim=-1))
    memory = attention.prepare(given.keys, given.keep, given.values)
    given.query.requires_grad_()
    context, _, _ = attention.look(given.query, memory, allow=given.allow, watch=watch)
    assert not context[EMPTY_SENTENCE].any()
    assert not context[FORBIDDEN_QUERY].any()
    backward(context, attention, given)


@pytest.mark.parametrize(("score", "normaliser", "placement"), COMBINATIONS)
def test_a_source_of_no_positions_at_all_reads_zeros(score: str, normaliser: str, placement: str) -> None:
    """An empty tape."""
    given = scene(score)
    none = given._replace(keys=given.keys[:, :0], values=given.values[:, :0], keep=given.keep[:, :0])
    attention = build(score, normaliser, placement)
    for watch in (PLAIN, FULL):
        memory = attention.prepare(none.keys, none.keep, none.values)
        carry = attention.start(memory, 3)
        context, _, _ = attention.look(none.query, memory, at=none.at, carry=carry, watch=watch)
        assert context.shape == (5, 3, 13)
        assert (context == 0).all()

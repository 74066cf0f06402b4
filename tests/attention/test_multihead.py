"""Multi-head attention against `reference.multi_head` and `reference.self_attention`, with masks and caches."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from attention import reference
from attention.against_oracle import assert_agrees
from attention.helpers import (
    COVERED,
    FULL,
    SCORE_NAMES,
    WEIGHTS,
    attend,
    build,
    close,
    make_inputs,
    mask,
    rng,
)
from attention.oracle import PLACEMENT_ORACLES, Oracle
from heedful.attention import Attention, Hooks, Memory, causal

WIDTH, COUNT = 10, 5  # heads of two


def parameters(attention: Attention) -> dict[str, Any]:
    """W_q, b_q, W_k, b_k, W_v, b_v, W_o, b_o as lists."""
    letters = {"to_query": "q", "to_key": "k", "to_value": "v", "out": "o"}
    kinds = {"weight": "W", "bias": "b"}
    return {
        f"{kind}_{letter}": attention.get_parameter(f"heads.{part}.{name}").tolist()
        for part, letter in letters.items()
        for name, kind in kinds.items()
    }


def cross_attention(**settings: Any) -> Attention:
    return build("scaled-dot", query=WIDTH, key=11, value=13, heads=COUNT, **settings)


def self_attention(**settings: Any) -> Attention:
    return build("scaled-dot", query=WIDTH, key=WIDTH, heads=COUNT, **settings)


def sequence(seed: int = 2) -> Tensor:
    return torch.randn(5, 7, WIDTH, generator=rng(seed), dtype=torch.float64)


@pytest.mark.parametrize("hooks", [FULL, Hooks()], ids=["explicit", "fused"])
def test_cross_attention_equals_the_reference(hooks: Hooks) -> None:
    inputs = make_inputs()
    query = sequence()[:, :3]
    attention = cross_attention()
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    context, output, _ = attend(attention, query, memory, allowed=inputs.allowed, hooks=hooks)
    assert attention.site.heads == COUNT
    for b in range(5):
        for q in range(3):
            allowed = (inputs.keep[b] & inputs.allowed[b, q]).tolist()
            expected, weights = reference.multi_head(
                query[b, q].tolist(), inputs.keys[b].tolist(), inputs.values[b].tolist(), allowed, COUNT,
                **parameters(attention),
            )  # fmt: skip
            close(context[b, q], expected)
            if output.weights is not None:
                close(output.weights[b, q], weights)


@pytest.mark.parametrize("hooks", [FULL, Hooks()], ids=["explicit", "fused"])
@pytest.mark.parametrize("ahead", [True, False], ids=["both ways", "causal"])
def test_self_attention_equals_the_reference(ahead: bool, hooks: Hooks) -> None:
    """Padded positions attend like all others, and are never attended to."""
    x, keep = sequence(), make_inputs().keep
    attention = self_attention()
    memory = attention.prepare(x, keep)
    context, output, _ = attend(attention, x, memory, allowed=None if ahead else causal(7), hooks=hooks)
    for b in range(5):
        outputs, weights = reference.self_attention(
            x[b].tolist(), keep[b].tolist(), COUNT, causal=not ahead, **parameters(attention)
        )
        close(context[b], outputs)
        if output.weights is not None:
            close(output.weights[b], weights)


@pytest.mark.parametrize("hooks", [FULL, Hooks()], ids=["explicit", "fused"])
def test_a_cache_of_keys_and_values_gives_the_same_as_all_steps_at_once(hooks: Hooks) -> None:
    x, keep = sequence(), make_inputs().keep
    attention = self_attention()
    all_steps, output, _ = attend(attention, x, attention.prepare(x, keep), allowed=causal(7), hooks=hooks)
    cache: Memory | None = None
    for t in range(7):
        new = attention.prepare(x[:, t : t + 1], keep[:, t : t + 1])
        cache = new if cache is None else cache.append(new)
        context, step, _ = attend(attention, x[:, t : t + 1], cache, hooks=hooks)
        close(context[:, 0], all_steps[:, t], 1e-12)
        if output.weights is not None:
            assert step.weights is not None
            close(step.weights[:, 0], output.weights[:, t, :, : t + 1], 1e-12)


def test_append_and_select_do_not_change_the_memory() -> None:
    x, keep = sequence(), make_inputs().keep
    attention = self_attention()
    memory = attention.prepare(x, keep)
    before = Memory(memory.keys.clone(), memory.values.clone(), memory.keep.clone())
    longer, fewer = memory.append(memory), memory.select(torch.tensor([4, 1, 1]))
    for actual, was in zip(
        (memory.keys, memory.values, memory.keep), (before.keys, before.values, before.keep), strict=True
    ):
        assert torch.equal(actual, was)
    assert torch.equal(longer.keep, torch.cat([keep, keep], dim=1))
    own, _, _ = attend(attention, x, memory)
    chosen, _, _ = attend(attention, x[[4, 1, 1]], fewer)
    close(chosen, own[[4, 1, 1]], 1e-12)


@pytest.mark.parametrize("score", SCORE_NAMES)
def test_every_score_works_with_several_heads(score: str) -> None:
    """The parameters of a score are shared by the heads; coverage is counted per head."""
    inputs = make_inputs()._replace(query=sequence()[:, :3])
    attention = build(score, query=WIDTH, key=11, value=13, heads=COUNT)
    oracle = Oracle.of(attention, score, "softmax", "global", heads=COUNT)
    assert_agrees(attention, oracle, inputs, allowed=inputs.allowed, steps=3 if score == COVERED else 1)


@pytest.mark.parametrize("placement", PLACEMENT_ORACLES)
def test_every_placement_works_with_several_heads(placement: str) -> None:
    inputs = make_inputs()._replace(query=sequence()[:, :3])
    attention = build("scaled-dot", placement=placement, query=WIDTH, key=11, value=13, heads=COUNT)
    oracle = Oracle.of(attention, "scaled-dot", "softmax", placement, heads=COUNT)
    assert_agrees(attention, oracle, inputs, allowed=inputs.allowed)


def test_one_head_with_identity_projections_equals_attention_without_heads() -> None:
    x, keep = sequence(), make_inputs().keep
    one, none = (
        build("scaled-dot", query=WIDTH, key=WIDTH, heads=1),
        build("scaled-dot", query=WIDTH, key=WIDTH),
    )
    with torch.no_grad():
        for name, parameter in one.named_parameters():
            parameter.copy_(torch.eye(WIDTH) if name.endswith("weight") else torch.zeros(WIDTH))
    close(attend(one, x, one.prepare(x, keep))[0], attend(none, x, none.prepare(x, keep))[0], 1e-12)


def test_heads_are_independent() -> None:
    """Other query weights of head 1 change the weights of head 1 alone."""
    inputs, query = make_inputs(), sequence()[:, :3]
    attention = cross_attention()
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    before, _ = attention(query, memory, hooks=WEIGHTS)
    with torch.no_grad():
        attention.get_parameter("heads.to_query.weight")[2:4] *= -3.0
    after, _ = attention(query, memory, hooks=WEIGHTS)
    assert before.weights is not None
    assert after.weights is not None
    changed = (before.weights != after.weights)[:3].any(dim=-1).any(dim=0).any(dim=0)
    assert changed.tolist() == [False, True, False, False, False]


def test_the_causal_mask_allows_a_position_and_those_before_it() -> None:
    assert causal(3).tolist() == [[[True, False, False], [True, True, False], [True, True, True]]]
    x = sequence()
    attention = self_attention()
    all_results = mask("1111111").expand(5, 7)
    before, _, _ = attend(attention, x, attention.prepare(x, all_results), allowed=causal(7))
    x = x.clone()
    x[:, 4:] += 1.0
    after, _, _ = attend(attention, x, attention.prepare(x, all_results), allowed=causal(7))
    close(after[:, :4], before[:, :4], 1e-12)
    assert not torch.allclose(after[:, 4:], before[:, 4:])

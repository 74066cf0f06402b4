"""Several heads: against `reference.multi_head` and `self_attention`, with masks, and piece by piece."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from attention import reference
from attention.agreement import agrees
from attention.helpers import (
    COVERED,
    FULL,
    SCORE_NAMES,
    SEEN,
    build,
    close,
    mask,
    rng,
    scene,
)
from attention.oracle import PLACEMENT_ORACLES, Oracle
from heedful.attention import Attention, Memory, Watch, causal

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


def standard(**settings: Any) -> Attention:
    return build("scaled-dot", query=WIDTH, key=11, value=13, heads=COUNT, **settings)


def itself(**settings: Any) -> Attention:
    return build("scaled-dot", query=WIDTH, key=WIDTH, heads=COUNT, **settings)


def sequence(seed: int = 2) -> Tensor:
    return torch.randn(5, 7, WIDTH, generator=rng(seed), dtype=torch.float64)


@pytest.mark.parametrize("watch", [FULL, Watch()], ids=["explicit", "fused"])
def test_cross_attention_is_vaswanis(watch: Watch) -> None:
    given = scene()
    query = sequence()[:, :3]
    attention = standard()
    memory = attention.prepare(given.keys, given.keep, given.values)
    context, look, _ = attention.look(query, memory, allow=given.allow, watch=watch)
    assert attention.site.heads == COUNT
    for b in range(5):
        for q in range(3):
            allowed = (given.keep[b] & given.allow[b, q]).tolist()
            output, weights = reference.multi_head(
                query[b, q].tolist(), given.keys[b].tolist(), given.values[b].tolist(), allowed, COUNT,
                **parameters(attention),
            )  # fmt: skip
            close(context[b, q], output)
            if look.weights is not None:
                close(look.weights[b, q], weights)


@pytest.mark.parametrize("watch", [FULL, Watch()], ids=["explicit", "fused"])
@pytest.mark.parametrize("ahead", [True, False], ids=["both ways", "causal"])
def test_self_attention_is_vaswanis(ahead: bool, watch: Watch) -> None:
    """Padded positions ask like any other and are never read."""
    x, keep = sequence(), scene().keep
    attention = itself()
    memory = attention.prepare(x, keep)
    context, look, _ = attention.look(x, memory, allow=None if ahead else causal(7), watch=watch)
    for b in range(5):
        outputs, weights = reference.self_attention(
            x[b].tolist(), keep[b].tolist(), COUNT, causal=not ahead, **parameters(attention)
        )
        close(context[b], outputs)
        if look.weights is not None:
            close(look.weights[b], weights)


@pytest.mark.parametrize("watch", [FULL, Watch()], ids=["explicit", "fused"])
def test_keys_and_values_kept_from_step_to_step_give_what_all_at_once_gives(watch: Watch) -> None:
    x, keep = sequence(), scene().keep
    attention = itself()
    whole, look, _ = attention.look(x, attention.prepare(x, keep), allow=causal(7), watch=watch)
    cache: Memory | None = None
    for t in range(7):
        new = attention.prepare(x[:, t : t + 1], keep[:, t : t + 1])
        cache = new if cache is None else cache.append(new)
        context, step, _ = attention.look(x[:, t : t + 1], cache, watch=watch)
        close(context[:, 0], whole[:, t], 1e-12)
        if look.weights is not None:
            assert step.weights is not None
            close(step.weights[:, 0], look.weights[:, t, :, : t + 1], 1e-12)


def test_appending_and_selecting_leave_the_memory_they_start_from_as_it_was() -> None:
    x, keep = sequence(), scene().keep
    attention = itself()
    memory = attention.prepare(x, keep)
    before = Memory(memory.keys.clone(), memory.values.clone(), memory.keep.clone())
    longer, fewer = memory.append(memory), memory.select(torch.tensor([4, 1, 1]))
    for found, was in zip(
        (memory.keys, memory.values, memory.keep), (before.keys, before.values, before.keep), strict=True
    ):
        assert torch.equal(found, was)
    assert torch.equal(longer.keep, torch.cat([keep, keep], dim=1))
    own, _, _ = attention.look(x, memory)
    chosen, _, _ = attention.look(x[[4, 1, 1]], fewer)
    close(chosen, own[[4, 1, 1]], 1e-12)


@pytest.mark.parametrize("score", SCORE_NAMES)
def test_every_score_looks_with_several_heads(score: str) -> None:
    """The parameters of a score are shared by the heads; coverage is counted per head."""
    given = scene()._replace(query=sequence()[:, :3])
    attention = build(score, query=WIDTH, key=11, value=13, heads=COUNT)
    oracle = Oracle.of(attention, score, "softmax", "global", heads=COUNT)
    agrees(attention, oracle, given, allow=given.allow, steps=3 if score == COVERED else 1)


@pytest.mark.parametrize("placement", PLACEMENT_ORACLES)
def test_every_placement_looks_with_several_heads(placement: str) -> None:
    given = scene()._replace(query=sequence()[:, :3])
    attention = build("scaled-dot", placement=placement, query=WIDTH, key=11, value=13, heads=COUNT)
    oracle = Oracle.of(attention, "scaled-dot", "softmax", placement, heads=COUNT)
    agrees(attention, oracle, given, allow=given.allow)


def test_one_head_with_identity_projections_is_no_heads_at_all() -> None:
    x, keep = sequence(), scene().keep
    one, none = (
        build("scaled-dot", query=WIDTH, key=WIDTH, heads=1),
        build("scaled-dot", query=WIDTH, key=WIDTH),
    )
    with torch.no_grad():
        for name, parameter in one.named_parameters():
            parameter.copy_(torch.eye(WIDTH) if name.endswith("weight") else torch.zeros(WIDTH))
    close(one.look(x, one.prepare(x, keep))[0], none.look(x, none.prepare(x, keep))[0], 1e-12)


def test_heads_do_not_see_one_another() -> None:
    """What head 1 is asked changes what head 1 reads and nothing else."""
    given, query = scene(), sequence()[:, :3]
    attention = standard()
    memory = attention.prepare(given.keys, given.keep, given.values)
    _, before, _ = attention.look(query, memory, watch=SEEN)
    with torch.no_grad():
        attention.get_parameter("heads.to_query.weight")[2:4] *= -3.0
    _, after, _ = attention.look(query, memory, watch=SEEN)
    assert before.weights is not None
    assert after.weights is not None
    changed = (before.weights != after.weights)[:3].any(dim=-1).any(dim=0).any(dim=0)
    assert changed.tolist() == [False, True, False, False, False]


def test_the_causal_mask_opens_itself_and_the_past() -> None:
    assert causal(3).tolist() == [[[True, False, False], [True, True, False], [True, True, True]]]
    x = sequence()
    attention = itself()
    everything = mask("1111111").expand(5, 7)
    before, _, _ = attention.look(x, attention.prepare(x, everything), allow=causal(7))
    x = x.clone()
    x[:, 4:] += 1.0
    after, _, _ = attention.look(x, attention.prepare(x, everything), allow=causal(7))
    close(after[:, :4], before[:, :4], 1e-12)
    assert not torch.allclose(after[:, 4:], before[:, 4:])

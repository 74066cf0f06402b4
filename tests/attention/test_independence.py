"""Nothing is kept on a module between calls, and nothing leaks between sentences, queries or padding."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attention.helpers import (
    COVERED,
    PLACEMENT_SETTINGS,
    SCORE_NAMES,
    SEEN,
    Scene,
    build,
    close,
    enliven,
    scene,
    see,
)
from heedful.attention import PLAIN, Attention, Tape, Watch

# Every score and every placement that gives the same twice; sampling has its own tests.
MECHANISMS = [(score, "global") for score in SCORE_NAMES] + [
    ("general", placement) for placement in PLACEMENT_SETTINGS if placement not in ("global", "hard sample")
]
each_mechanism = pytest.mark.parametrize(("score", "placement"), MECHANISMS)


def belongings(module: nn.Module) -> dict[str, Any]:
    """Everything every submodule holds, parameters by value and the rest by identity."""
    held: dict[str, Any] = {}
    for name, part in module.named_modules():
        for key, thing in vars(part).items():
            inner = thing.items() if isinstance(thing, dict) else [("", thing)]
            held |= {f"{name}.{key}.{k}": id(v) for k, v in inner}
            held[f"{name}.{key}.count"] = len(inner)
    return held


def everything(attention: Attention, given: Scene, watch: Watch = SEEN) -> list[Tensor]:
    """All that two looks in a row give."""
    memory = attention.prepare(given.keys, given.keep, given.values)
    carry = attention.start(memory, given.query.shape[1])
    results: list[Tensor] = []
    for _ in range(2):
        context, look, carry = attention.look(given.query, memory, at=given.at, carry=carry, watch=watch)
        results += [context, *carry.values(), *look.extra.values()]
        results += [] if look.weights is None else [look.weights]
    return results


def same(left: list[Tensor], right: list[Tensor], within: float = 0.0) -> None:
    for one, other in zip(left, right, strict=True):
        close(one, other, within)


@each_mechanism
def test_looking_at_a_then_b_then_a_again_gives_the_same_and_leaves_no_trace(
    score: str, placement: str
) -> None:
    attention = build(score, placement=placement)
    a, b = scene(score, seed=1), scene(score, seed=2)
    before, parameters = belongings(attention), {k: v.clone() for k, v in attention.state_dict().items()}
    for watch in (SEEN, PLAIN):
        first = everything(attention, a, watch)
        everything(attention, b, watch)
        same(everything(attention, a, watch), first)
    assert belongings(attention) == before
    same(list(attention.state_dict().values()), list(parameters.values()))


@each_mechanism
def test_two_texts_read_in_turns_do_not_disturb_one_another(score: str, placement: str) -> None:
    attention = build(score, placement=placement)
    scenes = [scene(score, seed=1), scene(score, seed=2)]
    apart = [everything(attention, given) for given in scenes]
    memories = [attention.prepare(given.keys, given.keep, given.values) for given in scenes]
    carries = [attention.start(memory, 3) for memory in memories]
    turns: list[list[Tensor]] = [[], []]
    for _ in range(2):
        for i, given in enumerate(scenes):
            context, look, carries[i] = attention.look(
                given.query, memories[i], at=given.at, carry=carries[i], watch=SEEN
            )
            assert look.weights is not None
            turns[i] += [context, *carries[i].values(), *look.extra.values(), look.weights]
    for together, alone in zip(turns, apart, strict=True):
        same(together, alone)


@each_mechanism
@pytest.mark.parametrize("watch", [SEEN, PLAIN], ids=["seen", "plain"])
def test_a_sentence_does_not_know_its_neighbours(score: str, placement: str, watch: Watch) -> None:
    attention, given = build(score, placement=placement), scene(score)
    together = everything(attention, given, watch)
    for i in range(5):
        alone = everything(attention, given.sentence(i), watch)
        same(alone, [result[i : i + 1] for result in together], 1e-12)


@each_mechanism
def test_padding_does_not_matter(score: str, placement: str) -> None:
    """Neither how wide it is nor what it holds."""
    attention, given = build(score, placement=placement), scene(score).sentence(1)  # four of seven
    context, weights = see(attention, given)
    cut = given._replace(keys=given.keys[:, :4], values=given.values[:, :4], keep=given.keep[:, :4])
    rubbish = torch.full((1, 6, 13), 1e3, dtype=torch.float64)
    wide = given._replace(
        keys=torch.cat([given.keys, rubbish[..., :11]], dim=1),
        values=torch.cat([given.values, rubbish], dim=1),
        keep=torch.cat([given.keep, torch.zeros(1, 6, dtype=torch.bool)], dim=1),
    )
    for other, count in ((cut, 4), (wide, 13)):
        found, seen = see(attention, other)
        close(found, context, 1e-12)
        close(seen[..., :4], weights[..., :4], 1e-12)
        assert seen.shape[-1] == count
        assert (seen[..., 4:] == 0).all()


@each_mechanism
def test_queries_do_not_see_one_another(score: str, placement: str) -> None:
    attention, given = build(score, placement=placement), scene(score)
    together = everything(attention, given)
    for q in range(3):
        one = given._replace(query=given.query[:, q : q + 1], at=given.at[:, q : q + 1])
        same(everything(attention, one), [result[:, q : q + 1] for result in together], 1e-12)


def test_what_prepare_was_given_is_never_written_to() -> None:
    for score in SCORE_NAMES:
        attention, given = build(score), scene(score)
        before = [part.clone() for part in given]
        everything(attention, given)
        same(list(given), before)


def test_a_carry_is_replaced_and_never_written_to() -> None:
    attention, given = build(COVERED), scene()
    memory = attention.prepare(given.keys, given.keep, given.values)
    first = attention.start(memory, 3)
    _, _, second = attention.look(given.query, memory, carry=first)
    assert (first["coverage"] == 0).all()
    held = second["coverage"].clone()
    attention.look(given.query, memory, carry=second)
    assert torch.equal(second["coverage"], held)


def test_a_tape_leaves_no_trace_on_its_module() -> None:
    tape = enliven(Tape(2, 3)).double()
    x = torch.ones(1, 2, dtype=torch.float64)
    before = belongings(tape)
    memory = tape.start(x)
    summary = x.new_zeros(1, 3)
    for _ in range(3):
        summary, cell, _ = tape.read(x, memory, summary)
        memory = tape.write(memory, summary + 1, cell)
    assert belongings(tape) == before

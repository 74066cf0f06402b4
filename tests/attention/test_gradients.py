"""`gradcheck` of everything that learns, in float64, over masks with holes and rows without any key."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from attention.helpers import (
    COVERED,
    FULL,
    PLACEMENT_SETTINGS,
    SCORE_NAMES,
    SEEN,
    build,
    enliven,
    mask,
    query_size,
    rng,
)
from heedful.attention import NORMALISERS, Attention, Tape, Watch, causal

pytestmark = pytest.mark.usefixtures("as_users_run")  # shapes are checked in `test_contract.py`
KEEP = mask("10110", "00000", "00100")
ALLOW = mask("11010", "00000").expand(3, 2, 5)  # the second query may read nothing
DIFFERENTIABLE = [name for name in PLACEMENT_SETTINGS if name not in ("hard sample", "hard argmax")]


def leaf(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=rng(seed), dtype=torch.float64).requires_grad_()


def checked(attention: Attention, query: int, key: int, look: Callable[..., tuple[Tensor, ...]]) -> None:
    """gradcheck with respect to query, keys, values and every parameter (it perturbs them in place)."""
    inputs = (leaf(3, 2, query, seed=1), leaf(3, 5, key, seed=2), leaf(3, 5, 2, seed=3))
    assert gradcheck(look, (*inputs, *attention.parameters()))


def looked(attention: Attention, steps: int = 1) -> Callable[..., tuple[Tensor, ...]]:
    def look(query: Tensor, keys: Tensor, values: Tensor, *parameters: Tensor) -> tuple[Tensor, ...]:
        memory = attention.prepare(keys, KEEP, values)
        carry = attention.start(memory, 2)
        results: list[Tensor] = []
        for step in range(steps):
            context, seen, carry = attention.look(query + step, memory, carry=carry, allow=ALLOW, watch=FULL)
            assert seen.scores is not None
            assert seen.weights is not None
            results += [context, seen.scores, seen.weights, *carry.values(), *seen.extra.values()]
        return tuple(result for result in results if result.is_floating_point())

    return look


@pytest.mark.parametrize("score", SCORE_NAMES)
def test_scores(score: str) -> None:
    key = 3
    query = key if query_size(score) != 2 else 2
    attention = build(score, query=query, key=key, hidden=3, table=5)
    checked(attention, query, key, looked(attention, steps=3 if score == COVERED else 1))


@pytest.mark.parametrize("normaliser", NORMALISERS)
def test_normalisers(normaliser: str) -> None:
    keep = torch.cat([KEEP, mask("11111")])
    scores = leaf(4, 5, seed=4)

    def normalise(scores: Tensor) -> Tensor:
        result: Tensor = NORMALISERS[normaliser].apply(scores, keep)
        return result

    assert gradcheck(normalise, (scores,))
    attention = build("general", normaliser, query=2, key=3)
    checked(attention, 2, 3, looked(attention))


@pytest.mark.parametrize("placement", DIFFERENTIABLE)
def test_placements(placement: str) -> None:
    attention = build("general", "softmax", placement, query=2, key=3, window=1)
    checked(attention, 2, 3, looked(attention))


@pytest.mark.parametrize("normaliser", [name for name in NORMALISERS if name != "smoothed-softmax"])
@pytest.mark.parametrize("how", ["sample", "argmax"])
def test_a_hard_look_teaches_through_log_probability_and_entropy_alone(how: str, normaliser: str) -> None:
    attention = build("general", normaliser, f"hard {how}", query=2, key=3)

    def look(query: Tensor, keys: Tensor, *parameters: Tensor) -> tuple[Tensor, Tensor]:
        memory = attention.prepare(keys, KEEP)
        _, seen, _ = attention.look(query, memory, allow=ALLOW, watch=SEEN, rng=rng())
        assert seen.weights is not None
        assert not seen.weights.requires_grad
        assert seen.extra["logp"].requires_grad  # gradcheck passes over what does not
        assert seen.extra["entropy"].requires_grad
        return seen.extra["logp"], seen.extra["entropy"]

    assert gradcheck(look, (leaf(3, 2, 2, seed=1), leaf(3, 5, 3, seed=2), *attention.parameters()))


@pytest.mark.parametrize("watch", [Watch(), SEEN], ids=["fused", "explicit"])
@pytest.mark.parametrize("score", ["dot", "scaled-dot", "additive"])
def test_several_heads_looking_at_themselves(score: str, watch: Watch) -> None:
    attention = build(score, query=4, key=4, value=4, heads=2, hidden=3)

    def look(x: Tensor, *parameters: Tensor) -> Tensor:
        return attention.look(x, attention.prepare(x, KEEP), allow=causal(5), watch=watch)[0]

    # The key's bias alone shifts all scores alike: its gradient is 0, which gradcheck confirms.
    assert gradcheck(look, (leaf(3, 5, 4, seed=5), *attention.parameters()))


@pytest.mark.parametrize("recall", [True, False])
@pytest.mark.parametrize("zero_slot", [True, False])
def test_the_tape(recall: bool, zero_slot: bool) -> None:
    tape = enliven(Tape(2, 3, width=5, recall=recall, zero_slot=zero_slot)).double()
    written = [torch.tensor([True, False]), torch.tensor([True, True])]

    def read(x: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        memory, summary, results = tape.start(x[0]), torch.zeros_like(rest[0]), []
        for step, keep in enumerate([*written, None]):
            summary, cell, _ = tape.read(x[step], memory, summary)
            results += [summary, cell]
            memory = tape.write(memory, rest[0] + step, rest[1] * (step + 1), keep)
        return tuple(results)

    inputs = (leaf(3, 2, 2, seed=6), leaf(2, 3, seed=7), leaf(2, 3, seed=8))
    assert gradcheck(read, (*inputs, *tape.parameters()))

"""`gradcheck` of every mechanism in float64, over masks with holes and rows without any key."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from attention.helpers import (
    COVERED,
    FULL,
    NORMALIZERS,
    PLACEMENT_SETTINGS,
    SCORE_NAMES,
    WEIGHTS,
    attend,
    build,
    mask,
    query_size,
    randomize_parameters,
    rng,
)
from heedful.attention import Attention, Hooks, Tape, causal

pytestmark = pytest.mark.usefixtures("as_users_run")  # shapes are checked in `test_contract.py`
KEEP = mask("10110", "00000", "00100")
ALLOWED = mask("11010", "00000").expand(3, 2, 5)  # the second query may read nothing
DIFFERENTIABLE = [name for name in PLACEMENT_SETTINGS if name not in ("hard sample", "hard argmax")]


def leaf(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=rng(seed), dtype=torch.float64).requires_grad_()


def assert_gradients(attention: Attention, query: int, key: int, output: Callable[..., tuple[Tensor, ...]]) -> None:
    """Check the gradients of query, keys, values and every parameter (gradcheck perturbs them in place)."""
    inputs = (leaf(3, 2, query, seed=1), leaf(3, 5, key, seed=2), leaf(3, 5, 2, seed=3))
    assert gradcheck(output, (*inputs, *attention.parameters()))


def attend_steps(attention: Attention, steps: int = 1) -> Callable[..., tuple[Tensor, ...]]:
    def run(query: Tensor, keys: Tensor, values: Tensor, *parameters: Tensor) -> tuple[Tensor, ...]:
        memory = attention.prepare(keys, KEEP, values)
        carry = attention.initial_carry(memory, 2)
        results: list[Tensor] = []
        for step in range(steps):
            context, output, carry = attend(attention, query + step, memory, carry=carry, allowed=ALLOWED, hooks=FULL)
            assert output.scores is not None
            assert output.weights is not None
            results += [context, output.scores, output.weights, *carry.values(), *output.extras.values()]
        return tuple(result for result in results if result.is_floating_point())

    return run


@pytest.mark.parametrize("score", SCORE_NAMES)
def test_gradients_of_scores(score: str) -> None:
    key = 3
    query = key if query_size(score) != 2 else 2
    attention = build(score, query=query, key=key, hidden=3, max_source_positions=5)
    assert_gradients(attention, query, key, attend_steps(attention, steps=3 if score == COVERED else 1))


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_gradients_of_normalizers(normalizer: str) -> None:
    keep = torch.cat([KEEP, mask("11111")])
    scores = leaf(4, 5, seed=4)

    def normalize(scores: Tensor) -> Tensor:
        result: Tensor = NORMALIZERS[normalizer](scores, keep)
        return result

    assert gradcheck(normalize, (scores,))
    attention = build("general", normalizer, query=2, key=3)
    assert_gradients(attention, 2, 3, attend_steps(attention))


@pytest.mark.parametrize("placement", DIFFERENTIABLE)
def test_placements(placement: str) -> None:
    attention = build("general", "softmax", placement, query=2, key=3, window=1)
    assert_gradients(attention, 2, 3, attend_steps(attention))


@pytest.mark.parametrize("normalizer", [name for name in NORMALIZERS if name != "smoothed-softmax"])
@pytest.mark.parametrize("mode", ["sample", "argmax"])
def test_hard_attention_learns_through_log_probability_and_entropy_alone(mode: str, normalizer: str) -> None:
    attention = build("general", normalizer, f"hard {mode}", query=2, key=3)

    def output(query: Tensor, keys: Tensor, *parameters: Tensor) -> tuple[Tensor, Tensor]:
        memory = attention.prepare(keys, KEEP)
        output, _ = attention(query, memory, allowed=ALLOWED, hooks=WEIGHTS, rng=rng())
        assert output.weights is not None
        assert not output.weights.requires_grad
        assert output.extras["logp"].requires_grad  # gradcheck skips outputs without gradients
        assert output.extras["entropy"].requires_grad
        return output.extras["logp"], output.extras["entropy"]

    assert gradcheck(output, (leaf(3, 2, 2, seed=1), leaf(3, 5, 3, seed=2), *attention.parameters()))


@pytest.mark.parametrize("hooks", [Hooks(), WEIGHTS], ids=["fused", "explicit"])
@pytest.mark.parametrize("score", ["dot", "scaled-dot", "additive"])
def test_several_heads_looking_at_themselves(score: str, hooks: Hooks) -> None:
    attention = build(score, query=4, key=4, value=4, heads=2, hidden=3)

    def output(x: Tensor, *parameters: Tensor) -> Tensor:
        return attend(attention, x, attention.prepare(x, KEEP), allowed=causal(5), hooks=hooks)[0]

    # The key's bias alone shifts all scores alike: its gradient is 0, which gradcheck confirms.
    assert gradcheck(output, (leaf(3, 5, 4, seed=5), *attention.parameters()))


@pytest.mark.parametrize("recall", [True, False])
@pytest.mark.parametrize("zero_slot", [True, False])
def test_the_tape(recall: bool, zero_slot: bool) -> None:
    tape = randomize_parameters(Tape(2, 3, score_width=5, recall=recall, zero_slot=zero_slot)).double()
    write_tape = [torch.tensor([True, False]), torch.tensor([True, True])]

    def run_tape(x: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        memory, summary, results = tape.initial_memory(x[0]), torch.zeros_like(rest[0]), []
        for step, keep in enumerate([*write_tape, None]):
            summary, cell, _ = tape(x[step], memory, summary)
            results += [summary, cell]
            memory = tape.write(memory, rest[0] + step, rest[1] * (step + 1), keep)
        return tuple(results)

    inputs = (leaf(3, 2, 2, seed=6), leaf(2, 3, seed=7), leaf(2, 3, seed=8))
    assert gradcheck(run_tape, (*inputs, *tape.parameters()))

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
    WEIGHTS,
    Inputs,
    attend,
    build,
    close,
    context_and_weights,
    make_inputs,
    randomize_parameters,
)
from heedful.attention import NO_HOOKS, Attention, Hooks, Tape

# Every score and every placement that gives the same twice; sampling has its own tests.
MECHANISMS = [(score, "global") for score in SCORE_NAMES] + [
    ("general", placement) for placement in PLACEMENT_SETTINGS if placement not in ("global", "hard sample")
]
each_mechanism = pytest.mark.parametrize(("score", "placement"), MECHANISMS)


def attributes(module: nn.Module) -> dict[str, Any]:
    """Return the attributes of every submodule, by identity."""
    attributes_by_name: dict[str, Any] = {}
    for name, part in module.named_modules():
        for key, thing in vars(part).items():
            inner = thing.items() if isinstance(thing, dict) else [("", thing)]
            attributes_by_name |= {f"{name}.{key}.{k}": id(v) for k, v in inner}
            attributes_by_name[f"{name}.{key}.count"] = len(inner)
    return attributes_by_name


def all_results(attention: Attention, inputs: Inputs, hooks: Hooks = WEIGHTS) -> list[Tensor]:
    """Return all results of two calls in a row."""
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    carry = attention.initial_carry(memory, inputs.query.shape[1])
    results: list[Tensor] = []
    for _ in range(2):
        context, output, carry = attend(
            attention, inputs.query, memory, positions=inputs.positions, carry=carry, hooks=hooks
        )
        results += [context, *carry.values(), *output.extras.values()]
        results += [] if output.weights is None else [output.weights]
    return results


def same(left: list[Tensor], right: list[Tensor], within: float = 0.0) -> None:
    for one, other in zip(left, right, strict=True):
        close(one, other, within)


@each_mechanism
def test_a_call_does_not_change_the_module_or_later_calls(score: str, placement: str) -> None:
    attention = build(score, placement=placement)
    a, b = make_inputs(score, seed=1), make_inputs(score, seed=2)
    before, parameters = attributes(attention), {k: v.clone() for k, v in attention.state_dict().items()}
    for hooks in (WEIGHTS, NO_HOOKS):
        first = all_results(attention, a, hooks)
        all_results(attention, b, hooks)
        same(all_results(attention, a, hooks), first)
    assert attributes(attention) == before
    same(list(attention.state_dict().values()), list(parameters.values()))


@each_mechanism
def test_interleaved_sequences_of_calls_are_independent(score: str, placement: str) -> None:
    attention = build(score, placement=placement)
    batches = [make_inputs(score, seed=1), make_inputs(score, seed=2)]
    apart = [all_results(attention, inputs) for inputs in batches]
    memories = [attention.prepare(inputs.keys, inputs.keep, inputs.values) for inputs in batches]
    carries = [attention.initial_carry(memory, 3) for memory in memories]
    turns: list[list[Tensor]] = [[], []]
    for _ in range(2):
        for i, inputs in enumerate(batches):
            context, output, carries[i] = attend(
                attention, inputs.query, memories[i], positions=inputs.positions, carry=carries[i], hooks=WEIGHTS
            )
            assert output.weights is not None
            turns[i] += [context, *carries[i].values(), *output.extras.values(), output.weights]
    for together, alone in zip(turns, apart, strict=True):
        same(together, alone)


@each_mechanism
@pytest.mark.parametrize("hooks", [WEIGHTS, NO_HOOKS], ids=["weights", "no hooks"])
def test_sentences_of_a_batch_are_independent(score: str, placement: str, hooks: Hooks) -> None:
    attention, inputs = build(score, placement=placement), make_inputs(score)
    together = all_results(attention, inputs, hooks)
    for i in range(5):
        alone = all_results(attention, inputs.sentence(i), hooks)
        same(alone, [result[i : i + 1] for result in together], 1e-12)


@each_mechanism
def test_padding_has_no_influence(score: str, placement: str) -> None:
    """Neither its width nor its content."""
    attention, inputs = build(score, placement=placement), make_inputs(score).sentence(1)  # four of seven
    context, weights = context_and_weights(attention, inputs)
    cut = inputs._replace(keys=inputs.keys[:, :4], values=inputs.values[:, :4], keep=inputs.keep[:, :4])
    garbage = torch.full((1, 6, 13), 1e3, dtype=torch.float64)
    wide = inputs._replace(
        keys=torch.cat([inputs.keys, garbage[..., :11]], dim=1),
        values=torch.cat([inputs.values, garbage], dim=1),
        keep=torch.cat([inputs.keep, torch.zeros(1, 6, dtype=torch.bool)], dim=1),
    )
    for other, count in ((cut, 4), (wide, 13)):
        actual, padded_weights = context_and_weights(attention, other)
        close(actual, context, 1e-12)
        close(padded_weights[..., :4], weights[..., :4], 1e-12)
        assert padded_weights.shape[-1] == count
        assert (padded_weights[..., 4:] == 0).all()


@each_mechanism
def test_queries_are_independent(score: str, placement: str) -> None:
    attention, inputs = build(score, placement=placement), make_inputs(score)
    together = all_results(attention, inputs)
    for q in range(3):
        one = inputs._replace(query=inputs.query[:, q : q + 1], positions=inputs.positions[:, q : q + 1])
        same(all_results(attention, one), [result[:, q : q + 1] for result in together], 1e-12)


def test_inputs_are_never_written_to() -> None:
    for score in SCORE_NAMES:
        attention, inputs = build(score), make_inputs(score)
        before = [part.clone() for part in inputs]
        all_results(attention, inputs)
        same(list(inputs), before)


def test_a_carry_is_never_written_to() -> None:
    attention, inputs = build(COVERED), make_inputs()
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    first = attention.initial_carry(memory, 3)
    _, second = attention(inputs.query, memory, carry=first)
    assert (first["coverage"] == 0).all()
    before = second["coverage"].clone()
    attention(inputs.query, memory, carry=second)
    assert torch.equal(second["coverage"], before)


def test_a_tape_does_not_change_its_module() -> None:
    tape = randomize_parameters(Tape(2, 3)).double()
    x = torch.ones(1, 2, dtype=torch.float64)
    before = attributes(tape)
    memory = tape.initial_memory(x)
    summary = x.new_zeros(1, 3)
    for _ in range(3):
        summary, cell, _ = tape(x, memory, summary)
        memory = tape.write(memory, summary + 1, cell)
    assert attributes(tape) == before

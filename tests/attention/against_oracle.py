"""The comparison behind every test of the contract: an attention call against the oracle, number by number."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attention.helpers import FULL, Inputs, attend, close, rng
from attention.oracle import Expected, Oracle, QueryCase
from heedful.attention import Attention, AttentionOutput

TOLERANCE = 1e-10  # in float64


def assert_agrees(
    attention: Attention,
    oracle: Oracle,
    inputs: Inputs,
    *,
    source: Tensor | None = None,
    allowed: Tensor | None = None,
    steps: int = 1,
) -> None:
    """Attend `steps` times and assert that scores, weights, context, extras and carry are the oracle's.

    `source` is the mask of the oracle where that is not `inputs.keep`.
    """
    source = inputs.keep if source is None else source
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    batch, queries = inputs.query.shape[:2]
    count, heads = memory.keep.shape[1], max(oracle.heads, 1)
    carry = attention.initial_carry(memory, queries)
    coverage = torch.zeros(batch, queries, heads, count).tolist()
    for step in range(steps):
        step_inputs = inputs._replace(query=inputs.query * (1 + step), positions=inputs.positions + step)
        context, output, carry = attend(
            attention,
            step_inputs.query,
            memory,
            positions=step_inputs.positions,
            carry=carry,
            allowed=allowed,
            hooks=FULL,
            rng=rng(step),
        )
        expected = [
            [oracle.attend(_case(step_inputs, b, q, source, allowed, output, coverage)) for q in range(queries)]
            for b in range(batch)
        ]
        _compare(context, output, expected)
        coverage = [[one.coverage for one in row] for row in expected]
        if attention.sequential:
            close(carry["coverage"], coverage, TOLERANCE)
        else:
            assert not carry


def _case(
    step_inputs: Inputs, b: int, q: int, source: Tensor, allowed: Tensor | None, output: AttentionOutput, coverage: Any
) -> QueryCase:
    if allowed is None:
        allowed = torch.ones(1, 1, source.shape[1], dtype=torch.bool)
    allowed = allowed.expand(*step_inputs.query.shape[:2], -1)
    heads = len(coverage[b][q])
    return QueryCase(
        q=step_inputs.query[b, q].tolist(),
        keys=step_inputs.keys[b].tolist(),
        values=step_inputs.values[b].tolist(),
        source=source[b].tolist(),
        allowed=allowed[b, q].tolist(),
        t=int(step_inputs.positions[b, q]),
        coverage=coverage[b][q],
        samples=output.extras["sample"][b, q].tolist() if "sample" in output.extras else [-1] * heads,
    )


def _compare(context: Tensor, output: AttentionOutput, expected: list[list[Expected]]) -> None:
    assert output.scores is not None
    assert output.weights is not None
    close(output.scores, [[one.scores for one in row] for row in expected], TOLERANCE)
    close(output.weights, [[one.weights for one in row] for row in expected], TOLERANCE)
    close(context, [[one.context for one in row] for row in expected], TOLERANCE)
    assert set(output.extras) == set(expected[0][0].extras)
    for name, actual in output.extras.items():
        extra = torch.tensor([[one.extras[name] for one in row] for row in expected], dtype=torch.float64)
        close(actual.double(), extra, TOLERANCE)

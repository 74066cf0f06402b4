"""The one comparison behind every test of the contract: a look against the oracle, number by number."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attention.helpers import FULL, Scene, close, rng
from attention.oracle import Expected, Oracle, Sight
from heedful.attention import Attention, Look

WITHIN = 1e-10  # in float64


def agrees(
    attention: Attention,
    oracle: Oracle,
    given: Scene,
    *,
    source: Tensor | None = None,
    allow: Tensor | None = None,
    steps: int = 1,
) -> None:
    """Prepare, then look `steps` times: scores, weights, context, extras and carry are the oracle's.

    `source` is what the oracle takes to be readable, where that is not simply `given.keep`.
    """
    source = given.keep if source is None else source
    memory = attention.prepare(given.keys, given.keep, given.values)
    batch, queries = given.query.shape[:2]
    count, heads = memory.keep.shape[1], max(oracle.heads, 1)
    carry = attention.start(memory, queries)
    coverage = torch.zeros(batch, queries, heads, count).tolist()
    for step in range(steps):
        asked = given._replace(query=given.query * (1 + step), at=given.at + step)
        context, look, carry = attention.look(
            asked.query, memory, at=asked.at, carry=carry, allow=allow, watch=FULL, rng=rng(step)
        )
        wanted = [
            [oracle.look(_sight(asked, b, q, source, allow, look, coverage)) for q in range(queries)]
            for b in range(batch)
        ]
        _compare(context, look, wanted)
        coverage = [[one.coverage for one in row] for row in wanted]
        if attention.sequential:
            close(carry["coverage"], coverage, WITHIN)
        else:
            assert not carry


def _sight(
    asked: Scene, b: int, q: int, source: Tensor, allow: Tensor | None, look: Look, coverage: Any
) -> Sight:
    if allow is None:
        allow = torch.ones(1, 1, source.shape[1], dtype=torch.bool)
    allow = allow.expand(*asked.query.shape[:2], -1)
    heads = len(coverage[b][q])
    return Sight(
        q=asked.query[b, q].tolist(),
        keys=asked.keys[b].tolist(),
        values=asked.values[b].tolist(),
        source=source[b].tolist(),
        allowed=allow[b, q].tolist(),
        t=int(asked.at[b, q]),
        coverage=coverage[b][q],
        samples=look.extra["sample"][b, q].tolist() if "sample" in look.extra else [-1] * heads,
    )


def _compare(context: Tensor, look: Look, wanted: list[list[Expected]]) -> None:
    assert look.scores is not None
    assert look.weights is not None
    close(look.scores, [[one.scores for one in row] for row in wanted], WITHIN)
    close(look.weights, [[one.weights for one in row] for row in wanted], WITHIN)
    close(context, [[one.context for one in row] for row in wanted], WITHIN)
    assert set(look.extra) == set(wanted[0][0].extra)
    for name, found in look.extra.items():
        extra = torch.tensor([[one.extra[name] for one in row] for row in wanted], dtype=torch.float64)
        close(found.double(), extra, WITHIN)

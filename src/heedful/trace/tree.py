"""All that a beam kept, as a tree of tokens with their weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.data.tokenizer import END
from heedful.decoding import Search
from heedful.record import Node, Tree
from heedful.record import Tensor as Packed

WEIGHT = "beam/weight"


class _Row(NamedTuple):
    node: int
    total: float


def tree_of(
    search: Search, site: str | None, best: list[tuple[int, ...]], name_of: Callable[[int], str]
) -> tuple[Tree, dict[str, Packed]]:
    """The tree of a search of one sentence; `best` are the outputs it returned."""
    nodes: list[Node] = []
    weights: list[Tensor] = []
    rows: dict[int, _Row] = {0: _Row(-1, 0.0)}
    ends = {(end.step, end.parent): end.score for end in search.done[0]}
    for t, step in enumerate(search.steps):
        place = step.place.get(0)
        if place is None:
            break
        after: dict[int, _Row] = {}
        for rank in range(search.how.size):
            parent, token = int(step.parents[place, rank]), int(step.tokens[place, rank])
            logp = float(step.logp[place, rank])
            if parent not in rows or not math.isfinite(logp):
                continue
            done = token == END
            total = rows[parent].total + logp
            nodes.append(
                Node(
                    id=len(nodes),
                    parent=rows[parent].node,
                    t=t,
                    token=token,
                    text=name_of(token),
                    logp=logp,
                    total=total,
                    state="done" if done else "alive",
                    score=ends.get((t, parent)) if done else None,
                )
            )
            if site is not None:
                weights.append(step.weights[site][place, parent])
            if not done:
                after[rank] = _Row(len(nodes) - 1, total)
        rows = after
    parents = {node.parent for node in nodes}
    last = max((node.t for node in nodes), default=0)
    marked = [
        node.model_copy(update={"state": "dropped"})
        if node.state == "alive" and node.id not in parents and node.t < last
        else node
        for node in nodes
    ]
    packed = {} if site is None else {WEIGHT: Packed.of(torch.stack(weights).numpy(), "N", "H", "S")}
    tree = Tree(
        size=search.how.size,
        nodes=marked,
        best=[found for tokens in best if (found := _ending(marked, tokens)) is not None],
        weight=None if site is None else WEIGHT,
    )
    return tree, packed


def _ending(nodes: list[Node], tokens: tuple[int, ...]) -> int | None:
    """The node at which an output ends."""
    at: int | None = -1
    for t, token in enumerate(tokens):
        at = next((n.id for n in nodes if n.t == t and n.parent == at and n.token == token), None)
        if at is None:
            return None
    return at

"""The hypotheses of a beam search as a tree of tokens with their attention weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.data.tokenizer import END
from heedful.decoding import BeamSearch
from heedful.trace.schema import BeamNode, BeamTree, PackedTensor

WEIGHTS = "beam/weights"  # the name of the tree's tensor


class _Parent(NamedTuple):
    node: int
    total_logp: float


def build_beam_tree(
    search: BeamSearch, site: str | None, outputs: Sequence[Sequence[int]], token_text: Callable[[int], str]
) -> tuple[BeamTree, dict[str, PackedTensor]]:
    """Return the tree of the first sentence of a search, and its tensor of weights at `site`.

    `outputs` are the token sequences that the search returned, best first.
    """
    nodes, weights = _expand(search, site, token_text)
    parents = {node.parent for node in nodes}
    last_step = max((node.step for node in nodes), default=0)
    nodes = [
        node.model_copy(update={"state": "pruned"})
        if node.state == "active" and node.id not in parents and node.step < last_step
        else node
        for node in nodes
    ]
    ends = [_find_end(nodes, tokens) for tokens in outputs]
    tree = BeamTree(
        beam_size=search.options.beam,
        nodes=nodes,
        best=[node for node in ends if node is not None],
        weights=None if site is None else WEIGHTS,
    )
    tensors = {} if site is None else {WEIGHTS: PackedTensor.pack(torch.stack(weights).numpy(), "N", "H", "S")}
    return tree, tensors


def _expand(
    search: BeamSearch, site: str | None, token_text: Callable[[int], str]
) -> tuple[list[BeamNode], list[Tensor]]:
    """Return a node per hypothesis and step, and the weights (head, key) of each."""
    nodes: list[BeamNode] = []
    weights: list[Tensor] = []
    beam: dict[int, _Parent] = {0: _Parent(-1, 0.0)}
    scores = {(end.step, end.parent): end.score for end in search.finished[0]}
    for t, step in enumerate(search.steps):
        index = step.index_of.get(0)
        if index is None:
            break
        next_beam: dict[int, _Parent] = {}
        for rank in range(search.options.beam):
            row, token = step.parents[index][rank], step.tokens[index][rank]
            logp = step.logp[index][rank]
            if row not in beam or not math.isfinite(logp):
                continue
            finished = token == END
            total_logp = beam[row].total_logp + logp
            nodes.append(
                BeamNode(
                    id=len(nodes),
                    parent=beam[row].node,
                    step=t,
                    token=token,
                    text=token_text(token),
                    logp=logp,
                    total_logp=total_logp,
                    state="finished" if finished else "active",
                    score=scores.get((t, row)) if finished else None,
                )
            )
            if site is not None:
                weights.append(step.weights[site][index, row])
            if not finished:
                next_beam[rank] = _Parent(len(nodes) - 1, total_logp)
        beam = next_beam
    return nodes, weights


def _find_end(nodes: Sequence[BeamNode], tokens: Sequence[int]) -> int | None:
    """Return the id of the node where a token sequence ends."""
    parent: int | None = -1
    for step, token in enumerate(tokens):
        matches = (node.id for node in nodes if (node.step, node.parent, node.token) == (step, parent, token))
        parent = next(matches, None)
        if parent is None:
            return None
    return parent

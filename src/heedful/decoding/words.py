"""What searches share: words that are never written, and putting a sentence's steps together again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from heedful import native
from heedful.attention import Look, Watch
from heedful.data.tokenizer import END, PAD, START
from heedful.decoding.types import Hypothesis
from heedful.layers.state import Stepped, as_it_is
from heedful.models import Engine, Next, State, Writer
from heedful.record import Site

Own = frozenset[str]


def banned(stepped: Stepped) -> Tensor:
    """The last step's scores, (row, word); padding and the start token are never written."""
    logits = stepped.logits[:, -1]
    if stepped.output is as_it_is:  # somebody else may hold them
        logits = logits.clone()
    logits[:, PAD] = logits[:, START] = float("-inf")
    return logits


def likeliest(model: Writer, state: State, last: Tensor, best: int, watch: Watch) -> Next:
    """The likeliest next words of each row: outright where the model can, else from all its scores."""
    found = model.next(state, last, best, watch) if isinstance(model, Engine) else None
    if found is not None:
        return found
    stepped = model.step(state, last, watch)
    scores = banned(stepped)
    logp, words = native.top(scores, min(best, scores.shape[-1]))
    return Next(words, logp, stepped.state, stepped.looks)


class Chosen(NamedTuple):
    """One step of the sentences that are still being written."""

    sentences: list[int]
    tokens: list[int]
    logp: list[float]
    weights: Mapping[str, Tensor]  # (row, head, key)

    @classmethod
    def of(cls, alive: Tensor, picked: Tensor, logp: Tensor, looks: Mapping[str, Look]) -> Chosen:
        return cls(alive.tolist(), picked.tolist(), logp.tolist(), step_weights(looks))


def step_weights(looks: Mapping[str, Look]) -> dict[str, Tensor]:
    """The weights of a single step: (row, head, key)."""
    return {site: look.weights[:, -1] for site, look in looks.items() if look.weights is not None}


def join_looks(steps: Sequence[Mapping[str, Tensor]], source: int, own: Own) -> dict[str, Tensor]:
    """The weights of one output's steps as (step, head, key).

    Over the source, padding is cut off. Over the output's own past (sites in `own`) a step sees one
    position more than the step before it; what it could not see yet is 0.
    """
    joined: dict[str, Tensor] = {}
    for site in steps[0] if steps else ():
        width = len(steps) if site in own else source
        rows = [step[site][:, :width] for step in steps]
        joined[site] = torch.stack([nn.functional.pad(row, (0, width - row.shape[-1])) for row in rows])
    return joined


def own_sites(sites: Sequence[Site]) -> Own:
    """The sites that look at the output's own past."""
    return frozenset(site.id for site in sites if site.kind == "self")


def unpadded(chosen: Sequence[Chosen], lengths: Sequence[int], own: Own) -> list[Hypothesis]:
    """The hypotheses of a search that keeps one a sentence."""
    tokens: list[list[int]] = [[] for _ in lengths]
    logps: list[list[float]] = [[] for _ in lengths]
    for step in chosen:
        for sentence, token, logp in zip(step.sentences, step.tokens, step.logp, strict=True):
            tokens[sentence].append(token)
            logps[sentence].append(logp)
    looks = _by_sentence(chosen, lengths, [len(mine) for mine in tokens], own)
    return [
        Hypothesis(
            tuple(tokens[i]), sum(logps[i]), sum(logps[i]), tuple(logps[i]), tokens[i][-1] == END, looks[i]
        )
        for i in range(len(lengths))
    ]


def _by_sentence(
    chosen: Sequence[Chosen], lengths: Sequence[int], written: Sequence[int], own: Own
) -> list[dict[str, Tensor]]:
    """What `join_looks` gives, for all sentences of a batch at once."""
    found: list[dict[str, Tensor]] = [{} for _ in lengths]
    rows = [torch.tensor(step.sentences) for step in chosen]
    for site, first in chosen[0].weights.items():
        wide = len(chosen) if site in own else first.shape[-1]
        fresh = first.new_zeros if site in own else first.new_empty  # every key of a source is written
        every = fresh(len(chosen), len(lengths), first.shape[1], wide)
        for t, step in enumerate(chosen):
            weights = step.weights[site]
            every[t, rows[t], :, : weights.shape[-1]] = weights
        for i, length in enumerate(lengths):
            found[i][site] = every[: written[i], i, :, : written[i] if site in own else length].contiguous()
    return found

"""Probes of recommenders: whether each user takes the held-out item, by the weights of the history.

Weights that need not sum to 1 keep their sum when they are replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.attention import AttentionOutput, Detail, Hooks, Override
from heedful.data.histories import Ints
from heedful.models import Recommender
from heedful.tasks.probes import (
    differentiable_output,
    frozen_weights,
    gradient_times_input,
    normalize_saliency,
)

MAX_NUMBERS = 2_000_000  # weights of the largest test of one probe


class RankingCase(NamedTuple):
    """A history, its held-out item and the negatives, and links to the gold items if they are known."""

    history: Ints
    item: int
    negatives: Ints
    links: list[tuple[int, int]] | None


@dataclass(frozen=True)
class HistoryProbe:
    """Several users, and whether each takes the held-out item; weights are shares of their sum."""

    model: Recommender
    cases: list[RankingCase]
    weights: Tensor
    mass: Tensor  # (row, head, 1): the sum of the model's own weights
    readable: Tensor
    probabilities: Tensor
    items: list[int]
    step: int = 0

    @property
    def valid(self) -> Tensor:
        return self.readable

    @property
    def token_weights(self) -> Tensor:
        return self.weights.mean(dim=1)

    def predict(self, weights: Tensor) -> Tensor:
        """Return the probabilities under other weights, with gradients."""
        return torch.stack([self._predict_case(row, weights[row]) for row in range(len(self.cases))])

    def _predict_case(self, row: int, weights: Tensor) -> Tensor:
        case = self.cases[row]
        case_weights = weights[..., : len(case.history)] * self.mass[row]

        def replace(site: str, _: AttentionOutput, __: Tensor) -> Override | None:
            return Override(case_weights[None]) if site == self.model.alignment_site else None

        targets = torch.full((len(weights),), case.item)
        hooks = Hooks(Detail.NONE, edit=replace)
        return both_probabilities(self.model.score_items(torch.from_numpy(case.history), targets, hooks).scores)


def score_case(model: Recommender, case: RankingCase, hooks: Hooks) -> tuple[AttentionOutput, Tensor]:
    """Return the attention for the held-out item, and its score."""
    output = model.score_items(torch.from_numpy(case.history), torch.tensor([case.item]), hooks)
    return output.attentions[model.alignment_site], output.scores


def both_probabilities(scores: Tensor) -> Tensor:
    """Return the probabilities that an item is taken and that it is not: (row, 2)."""
    taken = scores.sigmoid()
    return torch.stack([taken, 1 - taken], dim=-1)


def get_weights(attention: AttentionOutput) -> Tensor:
    """Return the recorded weights of an attention."""
    assert attention.weights is not None
    return attention.weights


def history_probes(model: Recommender, cases: Sequence[RankingCase], rows: Sequence[int]) -> Iterator[HistoryProbe]:
    """Yield probes of these cases, the longest histories first."""
    order = sorted(rows, key=lambda i: len(cases[i].history))
    while order:
        count = max(1, MAX_NUMBERS // len(cases[order[-1]].history) ** 2)
        chunk, order = order[-count:], order[:-count]
        yield _make_probe(model, [cases[row] for row in chunk], chunk)


def _make_probe(model: Recommender, cases: list[RankingCase], rows: list[int]) -> HistoryProbe:
    hooks = Hooks(Detail.WEIGHTS, frozenset({model.alignment_site}))
    with torch.no_grad():
        attentions, scores = zip(*(score_case(model, case, hooks) for case in cases), strict=True)
    by_case = [get_weights(attention)[0, 0] for attention in attentions]  # (head, key)
    mass = torch.stack([weights.sum(dim=-1, keepdim=True) for weights in by_case])
    longest = max(len(case.history) for case in cases)
    shares = torch.zeros(len(cases), by_case[0].shape[0], longest)
    readable = torch.zeros(len(cases), longest, dtype=torch.bool)
    for row, weights in enumerate(by_case):
        count = weights.shape[-1]
        shares[row, :, :count] = weights / mass[row].clamp_min(1e-12)
        readable[row, :count] = True
    return HistoryProbe(model, cases, shares, mass, readable, both_probabilities(torch.cat(scores)), rows)


def history_saliency(model: Recommender, case: RankingCase) -> Tensor:
    """Return `|sum_d x_jd dP/dx_jd|` of every history item j, weights held constant, normalized to sum 1."""
    with torch.enable_grad(), differentiable_output(model.history_embedding) as leaves:
        _, scores = score_case(model, case, frozen_weights({model.alignment_site}))
        (gradient,) = torch.autograd.grad(scores.sigmoid().sum(), leaves[0])
    return normalize_saliency(gradient_times_input(gradient, leaves[0]))

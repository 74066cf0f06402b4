"""Honesty tests: does it matter where a model looked? Definitions: docs/measures.md.

Each test takes a probe (decisions whose weights can be changed) and gives numbers for every decision: T1
correlation, T2 permutation, T3 uniform, T4 counterfactual weights (Jain & Wallace 2019, Wiegreffe & Pinter
2019), T5 erasure of weights (Serrano & Smith 2019). T6, erasure of words, needs the model: `measure.py`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from heedful.evaluation.divergence import jsd, tvd
from heedful.studies.probe import Probe
from heedful.trace.whatif import without

PERMUTATIONS = 100
ORDERS = ("weight", "gradient", "gradient x weight", "random")
RANDOM_ORDERS = 5


class Correlation(NamedTuple):
    """Kendall's tau-b of one pair of importances over decisions."""

    mean: float
    sd: float
    significant: float  # share with p < 0.05
    decisions: int


def correlation(first: Sequence[Tensor], second: Sequence[Tensor]) -> Correlation:
    """T1: how alike two rankings of source positions are; decisions with fewer than three say nothing."""
    from scipy.stats import kendalltau  # type: ignore[import-untyped]

    taus, small = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ties in all places: tau is nan, and left out
        for a, b in zip(first, second, strict=True):
            if len(a) >= 3:
                found = kendalltau(a.numpy(), b.numpy())
                if not math.isnan(found.statistic):
                    taus.append(float(found.statistic))
                    small += bool(found.pvalue < 0.05)
    if not taus:
        return Correlation(float("nan"), float("nan"), float("nan"), 0)
    values = torch.tensor(taus)
    return Correlation(float(values.mean()), float(values.std(unbiased=False)), small / len(taus), len(taus))


@torch.no_grad()
def permutation(probe: Probe, rng: Generator, times: int = PERMUTATIONS) -> Tensor:
    """T2: the median TVD over random permutations of the weights, for each decision."""
    rows, _, count = probe.weights.shape
    chance = torch.rand(rows, times, count, generator=rng)
    closed = ~probe.open[:, None].expand_as(chance)
    places = torch.arange(count).expand_as(chance)
    return _median_change(probe, torch.where(closed, places, _permuted(chance, probe.open)))


def _median_change(probe: Probe, order: Tensor) -> Tensor:
    """The median TVD over some orders of the weights (row, k, key)."""
    heads = probe.weights.shape[1]
    wide = probe.weights[:, None].expand(-1, order.shape[1], -1, -1)
    permuted = wide.gather(-1, order[:, :, None].expand(-1, -1, heads, -1))
    return tvd(probe.outcome(permuted), probe.p[:, None]).quantile(0.5, dim=1)


def _permuted(chance: Tensor, open_: Tensor) -> Tensor:
    """For each open position another one, at random, each once; closed positions are at the end or padded."""
    keys = chance.masked_fill(~open_[:, None], 2.0)
    order = keys.argsort(dim=-1)  # the open ones come first, in random order
    rank = (open_.cumsum(dim=-1) - 1).clamp_min(0)[:, None].expand_as(order)
    return order.gather(-1, rank)


@torch.no_grad()
def uniform(probe: Probe) -> Tensor:
    """T3a: the TVD when every readable position gets the same weight, nothing being trained again."""
    share = probe.open / probe.open.sum(dim=-1, keepdim=True).clamp_min(1)
    weights = share[:, None].expand_as(probe.weights).to(probe.weights)
    return tvd(probe.outcome(weights[:, None])[:, 0], probe.p)


def evened(weights: Tensor) -> Tensor:
    """All that is read alike, each look's sum as it was; what has no weight is not read."""
    read = (weights > 0).to(weights)
    return read * weights.sum(dim=-1, keepdim=True) / read.sum(dim=-1, keepdim=True).clamp_min(1)


def shuffled(weights: Tensor, rng: Generator) -> Tensor:
    """The weights of each look in another order; what has no weight stays so."""
    read = weights > 0
    order = torch.rand(weights.shape, generator=rng).masked_fill(~read, 2.0).argsort(dim=-1)
    rank = (read.cumsum(dim=-1) - 1).clamp_min(0)
    return torch.where(read, weights.gather(-1, order).gather(-1, rank), weights)


class Erased(NamedTuple):
    """T5, for each decision: one weight taken away, and many in some order."""

    best_weight: Tensor  # of the position with the largest weight, less that of a random one
    divergence: Tensor  # JSD when the best is erased, less JSD when the random one is
    flips_best: Tensor
    flips_random: Tensor
    share: dict[str, Tensor]  # of positions erased until the decision changes; nan: never


def erasure(probe: Probe, rng: Generator) -> Erased:
    """T5: erase weights (the others scaled up) one by one, by several orders, until the decision changes."""
    mean = probe.weights.mean(dim=1).masked_fill(~probe.open, -1.0)
    best = mean.argmax(dim=-1)
    other = _another(probe.open, best, rng)
    with torch.no_grad():
        both = torch.stack([_without(probe.weights, place[:, None]) for place in (best, other)], dim=1)
        q = probe.outcome(both)
    decision = probe.p.argmax(dim=-1)
    flips = q.argmax(dim=-1) != decision[:, None]
    apart = jsd(q, probe.p[:, None].expand_as(q))
    gap = mean.gather(1, best[:, None]) - mean.gather(1, other[:, None])
    slopes = _slopes(probe)
    orders = {
        "weight": mean.argsort(dim=-1, descending=True),
        "gradient": slopes.abs().masked_fill(~probe.open, -1.0).argsort(dim=-1, descending=True),
        "gradient x weight": (slopes * mean.clamp_min(0))
        .masked_fill(~probe.open, -math.inf)
        .argsort(dim=-1, descending=True),
    }
    share = {name: _until_changed(probe, order, decision) for name, order in orders.items()}
    drawn = []
    for _ in range(RANDOM_ORDERS):
        chance = torch.rand(mean.shape, generator=rng).masked_fill(~probe.open, -1.0)
        drawn.append(_until_changed(probe, chance.argsort(dim=-1, descending=True), decision))
    share["random"] = torch.stack(drawn).nanmean(dim=0)
    return Erased(gap.squeeze(1), apart[:, 0] - apart[:, 1], flips[:, 0], flips[:, 1], share)


def _another(open_: Tensor, best: Tensor, rng: Generator) -> Tensor:
    """A random open position that is not the best; the best itself where there is no other."""
    chance = torch.rand(open_.shape, generator=rng).masked_fill(~open_, -1.0)
    chance.scatter_(1, best[:, None], -0.5)
    return chance.argmax(dim=-1)


def _without(weights: Tensor, places: Tensor) -> Tensor:
    """The weights (row, head, key) without those of some places (row, n), the rest scaled to their mass."""
    gone = torch.zeros(weights.shape[0], weights.shape[2], dtype=torch.bool).scatter(1, places, True)
    return without(weights, gone[:, None])


def _slopes(probe: Probe) -> Tensor:
    """How much the largest probability would change with each weight: (row, key)."""
    with torch.enable_grad():
        weights = probe.weights.detach().clone().requires_grad_()
        p = probe.outcome(weights[:, None])[:, 0].max(dim=-1).values
        (slope,) = torch.autograd.grad(p.sum(), weights)
    return slope.sum(dim=1)


@torch.no_grad()
def _until_changed(probe: Probe, order: Tensor, decision: Tensor) -> Tensor:
    """The share of open positions that go before the decision changes; nan where it never does."""
    count = probe.open.sum(dim=-1)
    most = int(count.max()) - 1  # the last one is all there is
    if most < 1:
        return torch.full((len(order),), math.nan)
    steps = [_without(probe.weights, order[:, : k + 1]) for k in range(most)]
    changed = probe.outcome(torch.stack(steps, dim=1)).argmax(dim=-1) != decision[:, None]
    real = torch.arange(1, most + 1) < count[:, None]
    changed &= real
    first = changed.float().argmax(dim=1) + 1
    return torch.where(changed.any(dim=1), first / count, torch.nan)


class Counterfactual(NamedTuple):
    """T4, for each decision: the largest JSD of weights that leave the outcome within epsilon; 0: none."""

    divergence: Tensor
    largest: Tensor  # of the weights themselves


@torch.enable_grad()
def counterfactual(
    probe: Probe, rng: Generator, tries: int = 5, steps: int = 500, epsilon: float = 0.01
) -> Counterfactual:
    """T4: search weights as far from the model's own as can be while it says the same (Jain & Wallace)."""
    own = probe.weights.mean(dim=1)  # one set of weights for all heads
    rows, count = own.shape
    heads = probe.weights.shape[1]
    start = -probe.open.sum(dim=-1).clamp_min(1).float().log()
    z = start[:, None, None] + 3 * torch.randn(rows, tries, count, generator=rng)
    z.requires_grad_()
    optimizer = torch.optim.Adam([z], lr=0.01, amsgrad=True)
    closed = ~probe.open[:, None]

    def weights() -> Tensor:
        return z.masked_fill(closed, -math.inf).softmax(dim=-1)

    def outcome(alpha: Tensor) -> Tensor:
        return tvd(probe.outcome(alpha[:, :, None].expand(-1, -1, heads, -1)), probe.p[:, None])

    for _ in range(steps):
        alpha = weights()
        away = jsd(alpha, own[:, None].expand_as(alpha))
        pairs = [jsd(alpha[:, i], alpha[:, j]) for i in range(tries) for j in range(i)]
        apart = torch.stack(pairs).sum(dim=0) / (tries * (tries - 1)) if pairs else torch.zeros(rows)
        over = (outcome(alpha) - epsilon).clamp_min(0).sum(dim=1)
        loss = (-away.sum(dim=1) + 500 * over - apart).sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    with torch.no_grad():
        alpha = weights()
        away = jsd(alpha, own[:, None].expand_as(alpha))
        within = outcome(alpha) <= epsilon
    return Counterfactual(away.masked_fill(~within, 0.0).amax(dim=1), own.amax(dim=1))

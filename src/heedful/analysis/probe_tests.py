"""Faithfulness tests T1 to T5 on one probe. Definitions: docs/faithfulness.md.

A probe is a batch of decisions whose attention weights can be replaced; each test returns a value per decision.
T1 correlation, T2 permutation and T4 counterfactual weights are from Jain & Wallace (2019), T3 uniform weights
from Wiegreffe & Pinter (2019), T5 erasure of weights from Serrano & Smith (2019). T6, erasure of inputs, needs
the model and is in `faithfulness.py`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from heedful.metrics.divergence import jsd, tvd
from heedful.tasks.probes import Probe
from heedful.trace.edits import remove_weights

N_PERMUTATIONS = 100
ERASURE_ORDERS = ("weight", "gradient", "gradient_x_weight", "random")
N_RANDOM_ORDERS = 5
MIN_POSITIONS = 3  # decisions with fewer positions have no meaningful rank correlation
OUTCOME_PENALTY = 500.0  # T4: weight of a changed outcome in the search objective, as in Jain & Wallace (2019)
INITIAL_SPREAD = 3.0  # T4: standard deviation of the initial logits


class Correlation(NamedTuple):
    """Kendall's tau-b between two importance scores over decisions."""

    mean: float
    sd: float
    significant: float  # fraction with p < 0.05
    decisions: int


def correlation(first: Sequence[Tensor], second: Sequence[Tensor]) -> Correlation:
    """T1: rank correlation of two importance scores of the positions, decision by decision."""
    from scipy.stats import kendalltau  # type: ignore[import-untyped]

    taus, n_significant = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # if all positions tie, tau is nan and the decision is left out
        for a, b in zip(first, second, strict=True):
            if len(a) >= MIN_POSITIONS:
                result = kendalltau(a.numpy(), b.numpy())
                if not math.isnan(result.statistic):
                    taus.append(float(result.statistic))
                    n_significant += bool(result.pvalue < 0.05)
    if not taus:
        return Correlation(math.nan, math.nan, math.nan, 0)
    values = torch.tensor(taus)
    return Correlation(float(values.mean()), float(values.std(unbiased=False)), n_significant / len(taus), len(taus))


@torch.no_grad()
def permutation(probe: Probe, rng: Generator, n_permutations: int = N_PERMUTATIONS) -> Tensor:
    """T2: median TVD over random permutations of the weights, per decision."""
    rows, _, positions = probe.weights.shape
    keys = torch.rand(rows, n_permutations, positions, generator=rng)
    unreadable = ~probe.readable[:, None].expand_as(keys)
    identity = torch.arange(positions).expand_as(keys)
    return median_change(probe, torch.where(unreadable, identity, _random_orders(keys, probe.readable)))


def median_change(probe: Probe, orders: Tensor) -> Tensor:
    """Return the median TVD per decision over k permutations of the weights; `orders` is (row, k, key)."""
    heads = probe.weights.shape[1]
    repeated = probe.weights[:, None].expand(-1, orders.shape[1], -1, -1)
    permuted = repeated.gather(-1, orders[:, :, None].expand(-1, -1, heads, -1))
    return tvd(probe.predict(permuted), probe.probabilities[:, None]).quantile(0.5, dim=1)


def _random_orders(keys: Tensor, readable: Tensor) -> Tensor:
    """Return a random permutation of the readable positions, by sorting random keys."""
    order = keys.masked_fill(~readable[:, None], 2.0).argsort(dim=-1)  # readable ones first, in random order
    rank = (readable.cumsum(dim=-1) - 1).clamp_min(0)[:, None].expand_as(order)
    return order.gather(-1, rank)


@torch.no_grad()
def uniform(probe: Probe) -> Tensor:
    """T3: TVD with equal weights on all readable positions, without retraining, per decision."""
    share = probe.readable / probe.readable.sum(dim=-1, keepdim=True).clamp_min(1)
    weights = share[:, None].expand_as(probe.weights).to(probe.weights)
    return tvd(probe.predict(weights[:, None])[:, 0], probe.probabilities)


class Erasure(NamedTuple):
    """T5, per decision: effects of erasing one weight, and of erasing weights in several orders."""

    weight_difference: Tensor  # the largest weight minus a random one
    jsd_difference: Tensor  # JSD after erasing the largest, minus JSD after erasing the random one
    largest_flips: Tensor  # whether erasing the largest weight changes the decision
    random_flips: Tensor
    fraction_erased: dict[str, Tensor]  # positions erased until the decision changes, by order; nan: never


def erasure(probe: Probe, rng: Generator) -> Erasure:
    """T5: erase weights, rescaling the others, one at a time in several orders until the decision changes."""
    mean = probe.weights.mean(dim=1).masked_fill(~probe.readable, -1.0)
    largest = mean.argmax(dim=-1)
    other = _random_other(probe.readable, largest, rng)
    with torch.no_grad():
        erased = torch.stack([_erase(probe.weights, position[:, None]) for position in (largest, other)], dim=1)
        probabilities = probe.predict(erased)
    decision = probe.probabilities.argmax(dim=-1)
    flips = probabilities.argmax(dim=-1) != decision[:, None]
    divergence = jsd(probabilities, probe.probabilities[:, None].expand_as(probabilities))
    difference = mean.gather(1, largest[:, None]) - mean.gather(1, other[:, None])
    gradient = _weight_gradient(probe)
    importance = {
        "weight": mean,
        "gradient": gradient.abs().masked_fill(~probe.readable, -1.0),
        "gradient_x_weight": (gradient * mean.clamp_min(0)).masked_fill(~probe.readable, -math.inf),
    }
    fractions = {name: _fraction_until_flip(probe, _descending(v), decision) for name, v in importance.items()}
    random_fractions = []
    for _ in range(N_RANDOM_ORDERS):
        keys = torch.rand(mean.shape, generator=rng).masked_fill(~probe.readable, -1.0)
        random_fractions.append(_fraction_until_flip(probe, _descending(keys), decision))
    fractions["random"] = torch.stack(random_fractions).nanmean(dim=0)
    return Erasure(difference.squeeze(1), divergence[:, 0] - divergence[:, 1], flips[:, 0], flips[:, 1], fractions)


def _descending(importance: Tensor) -> Tensor:
    return importance.argsort(dim=-1, descending=True)


def _random_other(readable: Tensor, largest: Tensor, rng: Generator) -> Tensor:
    """Return a random readable position other than the largest; the largest itself if it is the only one."""
    keys = torch.rand(readable.shape, generator=rng).masked_fill(~readable, -1.0)
    keys.scatter_(1, largest[:, None], -0.5)
    return keys.argmax(dim=-1)


def _erase(weights: Tensor, positions: Tensor) -> Tensor:
    """Return the weights (row, head, key) without those at `positions` (row, n), the rest scaled to the same sum."""
    erased = torch.zeros(weights.shape[0], weights.shape[2], dtype=torch.bool).scatter(1, positions, True)
    return remove_weights(weights, erased[:, None])


def _weight_gradient(probe: Probe) -> Tensor:
    """Return the gradient of the largest probability with respect to each weight, summed over heads: (row, key)."""
    with torch.enable_grad():
        weights = probe.weights.detach().clone().requires_grad_()
        probability = probe.predict(weights[:, None])[:, 0].max(dim=-1).values
        (gradient,) = torch.autograd.grad(probability.sum(), weights)
    return gradient.sum(dim=1)


@torch.no_grad()
def _fraction_until_flip(probe: Probe, order: Tensor, decision: Tensor) -> Tensor:
    """Return the fraction of readable positions erased before the decision changes; nan if it never does."""
    n_readable = probe.readable.sum(dim=-1)
    max_erased = int(n_readable.max()) - 1  # at least one weight remains
    if max_erased < 1:
        return torch.full((len(order),), math.nan)
    erased = [_erase(probe.weights, order[:, : k + 1]) for k in range(max_erased)]
    flips = probe.predict(torch.stack(erased, dim=1)).argmax(dim=-1) != decision[:, None]
    flips &= torch.arange(1, max_erased + 1) < n_readable[:, None]
    first = flips.float().argmax(dim=1) + 1
    return torch.where(flips.any(dim=1), first / n_readable, torch.nan)


class Counterfactual(NamedTuple):
    """T4, per decision: the largest JSD to weights that keep the outcome within epsilon; 0 if none were found."""

    divergence: Tensor
    largest_weight: Tensor  # of the model's own weights


@torch.enable_grad()
def counterfactual(
    probe: Probe, rng: Generator, n_candidates: int = 5, steps: int = 500, epsilon: float = 0.01
) -> Counterfactual:
    """T4: search for weights as different as possible with the same outcome (Jain & Wallace 2019, section 4.2.2)."""
    original = probe.weights.mean(dim=1)  # candidates have the same weights in all heads
    rows, positions = original.shape
    heads = probe.weights.shape[1]
    uniform_logit = -probe.readable.sum(dim=-1).clamp_min(1).float().log()
    logits = uniform_logit[:, None, None] + INITIAL_SPREAD * torch.randn(rows, n_candidates, positions, generator=rng)
    logits.requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=0.01, amsgrad=True)
    unreadable = ~probe.readable[:, None]

    def candidates() -> Tensor:
        return logits.masked_fill(unreadable, -math.inf).softmax(dim=-1)

    def change(weights: Tensor) -> Tensor:
        return tvd(probe.predict(weights[:, :, None].expand(-1, -1, heads, -1)), probe.probabilities[:, None])

    for _ in range(steps):
        weights = candidates()
        distance = jsd(weights, original[:, None].expand_as(weights))
        pairs = [jsd(weights[:, i], weights[:, j]) for i in range(n_candidates) for j in range(i)]
        diversity = torch.stack(pairs).sum(dim=0) / (n_candidates * (n_candidates - 1)) if pairs else torch.zeros(rows)
        excess = (change(weights) - epsilon).clamp_min(0).sum(dim=1)
        loss = (-distance.sum(dim=1) + OUTCOME_PENALTY * excess - diversity).sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    with torch.no_grad():
        weights = candidates()
        distance = jsd(weights, original[:, None].expand_as(weights))
        same_outcome = change(weights) <= epsilon
    return Counterfactual(distance.masked_fill(~same_outcome, 0.0).amax(dim=1), original.amax(dim=1))

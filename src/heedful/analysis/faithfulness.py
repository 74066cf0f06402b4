"""Faithfulness tests of attention on a model's decisions: sampling, running in parallel and summarizing.

T1 correlation, T2 permutation, T3 uniform, T4 counterfactual, T5 erasure (of weights) and T6 input-erasure are defined
in docs/faithfulness.md. `probe_tests.py` has T1 to T5 on one batch of decisions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Generator, Tensor

from heedful.analysis.probe_tests import (
    ERASURE_ORDERS,
    Erasure,
    correlation,
    counterfactual,
    erasure,
    permutation,
    uniform,
)
from heedful.data.tokenizer import END
from heedful.errors import DataError
from heedful.metrics.divergence import tvd
from heedful.parallel import available_cpus, run_in_threads
from heedful.tasks.probes import Decision, ProbeTarget

TESTS = ("correlation", "permutation", "uniform", "erasure", "input-erasure", "counterfactual")
DEFAULT_TESTS = TESTS[:-1]  # the search for counterfactual weights is slow
OUTPUT_TESTS = ("permutation", "uniform")  # also measured by the quality of complete outputs
FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.5)  # of the input, erased or kept (DeYoung 2020)
ITEMS_PER_GROUP = 50  # items per parallel job
DECISIONS_PER_GROUP = 40  # decisions per parallel job of the leave-one-out test
MAX_SEED = 2**32 - 1  # tests add to the seed, and generators take less than 2**63
EPSILON = 0.01  # T4: largest TVD of the output that counts as the same outcome
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FaithfulnessOptions:
    """Which tests to run, and on how many decisions."""

    tests: Sequence[str] = DEFAULT_TESTS
    steps: int = 4  # decisions sampled per item
    counterfactuals: int = 100  # decisions of the counterfactual test
    search_steps: int = 500  # optimizer steps of the counterfactual test
    seed: int = 1
    log: Callable[[str], None] = field(default=lambda _: None)

    def __post_init__(self) -> None:
        if not 0 <= self.seed <= MAX_SEED:
            raise DataError(f"--seed {self.seed}: expected a number from 0 to {MAX_SEED}")


@torch.no_grad()
def run_faithfulness_tests(target: ProbeTarget, options: FaithfulnessOptions) -> dict[str, Any]:
    """Run the tests on decisions sampled from the model's own outputs; return a JSON-like dict of numbers."""
    on_outputs = bool(set(OUTPUT_TESTS) & set(options.tests))
    if not target.has_decisions and not on_outputs:
        raise DataError("this task has no single decision to probe: use --test permutation or --test uniform")
    steps = target.sample_steps(options.steps, options.seed)
    results: dict[str, Any] = {
        "decisions": sum(map(len, steps)),
        "decision": target.decision_name,
        "metric": target.metric_name,
        "positions": target.position_name,
    }
    if on_outputs:
        options.log("complete outputs")
        results["outputs"] = target.output_metrics(options.seed)
    if not target.has_decisions:
        return results
    options.log("decisions")
    results |= _test_weights(target, steps, options)
    if "correlation" in options.tests:
        options.log("correlation")
        results["correlation"] = _correlations(target, steps)
    if "input-erasure" in options.tests:
        options.log("erased inputs")
        results["input_erasure"] = _erase_inputs(target, options)
    if "counterfactual" in options.tests:
        options.log("counterfactual weights")
        results["counterfactual"] = _counterfactuals(target, options)
    return results


def _map_parallel(count: int, work: Callable[[int], T]) -> list[T]:
    """Call `work` with 0 to count - 1 in threads; return the results in order."""
    results: dict[int, T] = {}

    def run(number: int) -> None:
        with torch.no_grad():  # every thread has its own grad mode
            results[number] = work(number)

    run_in_threads(run, range(count), available_cpus())
    return [results[number] for number in range(count)]


def _group_by_length(target: ProbeTarget, steps: Sequence[set[int]]) -> list[list[set[int]]]:
    """Split the decisions into groups of items of similar length: each group has the steps of its items only."""
    order = sorted((i for i, item_steps in enumerate(steps) if item_steps), key=lambda i: len(target.sources[i]))
    groups = [set(order[first : first + ITEMS_PER_GROUP]) for first in range(0, len(order), ITEMS_PER_GROUP)]
    return [[item_steps if i in group else set() for i, item_steps in enumerate(steps)] for group in groups]


class _WeightResults(NamedTuple):
    """The results of T2, T3 and T5 on a group of decisions, one tensor per probe."""

    largest_weight: list[Tensor]
    permutation: list[Tensor]
    uniform: list[Tensor]
    erasure: list[Erasure]


def _test_weights(target: ProbeTarget, steps: Sequence[set[int]], options: FaithfulnessOptions) -> dict[str, Any]:
    """Run T2, T3 and T5; every group of decisions has a seed of its own."""
    groups = _group_by_length(target, steps)

    def run_group(number: int) -> _WeightResults:
        rng = Generator().manual_seed(options.seed + 1_000 * number)
        group = _WeightResults([], [], [], [])
        for probe in target.probes(groups[number]):
            group.largest_weight.append(probe.weights.mean(dim=1).amax(dim=-1))
            if "permutation" in options.tests:
                group.permutation.append(permutation(probe, rng))
            if "uniform" in options.tests:
                group.uniform.append(uniform(probe))
            if "erasure" in options.tests:
                group.erasure.append(erasure(probe, rng))
        return group

    parts = _map_parallel(len(groups), run_group)
    results: dict[str, Any] = {"largest_weight": float(torch.cat([t for p in parts for t in p.largest_weight]).mean())}
    if "permutation" in options.tests:
        results["permutation"] = {"median_tvd": _summarize(torch.cat([t for p in parts for t in p.permutation]))}
    if "uniform" in options.tests:
        results["uniform"] = {"tvd": _summarize(torch.cat([t for p in parts for t in p.uniform]))}
    if "erasure" in options.tests:
        results["erasure"] = _summarize_erasure([e for p in parts for e in p.erasure])
    return results


def _summarize(values: Tensor) -> dict[str, float]:
    return {
        "mean": float(values.mean()),
        "sd": float(values.std(unbiased=False)),
        "median": float(values.median()),
    }


def _summarize_erasure(results: Sequence[Erasure]) -> dict[str, Any]:
    largest = torch.cat([result.largest_flips for result in results])
    random = torch.cat([result.random_flips for result in results])
    flips = {
        "both": float((largest & random).float().mean()),
        "largest_only": float((largest & ~random).float().mean()),
        "random_only": float((~largest & random).float().mean()),
        "neither": float((~largest & ~random).float().mean()),
    }
    until_flip = {}
    for name in ERASURE_ORDERS:
        fraction = torch.cat([result.fraction_erased[name] for result in results])
        flipped = ~fraction.isnan()
        until_flip[name] = {
            "fraction_erased": float(fraction[flipped].mean()) if bool(flipped.any()) else None,
            "never": float((~flipped).float().mean()),
        }
    jsd_difference = float(torch.cat([result.jsd_difference for result in results]).mean())
    return {"jsd_difference": jsd_difference, "flips": flips, "until_flip": until_flip}


def _correlations(target: ProbeTarget, steps: Sequence[set[int]]) -> dict[str, Any]:
    """T1: correlate weights, gradients and leave-one-out effects over the valid positions."""
    decisions: list[Decision] = []
    weights, valid, probabilities = [], [], []
    for probe in target.probes(steps):
        for row, item in enumerate(probe.items):
            decisions.append((item, probe.step))
            weights.append(probe.token_weights[row])
            valid.append(probe.valid[row])
            probabilities.append(probe.probabilities[row])
    gradients = target.saliency(decisions)
    effects = _leave_one_out(target, decisions, probabilities)
    masks = [mask[: len(gradient)] for mask, gradient in zip(valid, gradients, strict=True)]
    importance = {
        "weight": [w[: len(m)][m] for w, m in zip(weights, masks, strict=True)],
        "gradient": [g[m] for g, m in zip(gradients, masks, strict=True)],
        "leave_one_out": [e[: len(m)][m] for e, m in zip(effects, masks, strict=True)],
    }
    pairs = (("weight", "gradient"), ("weight", "leave_one_out"), ("gradient", "leave_one_out"))
    return {f"{a}_vs_{b}": correlation(importance[a], importance[b])._asdict() for a, b in pairs}


def _leave_one_out(target: ProbeTarget, decisions: Sequence[Decision], probabilities: Sequence[Tensor]) -> list[Tensor]:
    """Return for each decision and input position the TVD when that token is removed."""
    starts = range(0, len(decisions), DECISIONS_PER_GROUP)

    def run_group(number: int) -> list[Tensor]:
        start = starts[number]
        group = decisions[start : start + DECISIONS_PER_GROUP]
        shortened: list[list[int]] = []
        repeated: list[Decision] = []
        for decision in group:
            source = list(target.sources[decision[0]])
            for position in range(len(source)):
                shortened.append(source[:position] + source[position + 1 :] or [END])
                repeated.append(decision)
        changed = target.predict_from(repeated, shortened)
        effects, row = [], 0
        for offset, (item, _) in enumerate(group):
            length = len(target.sources[item])
            effects.append(tvd(changed[row : row + length], probabilities[start + offset]))
            row += length
        return effects

    return [effect for effects in _map_parallel(len(starts), run_group) for effect in effects]


def _erase_inputs(target: ProbeTarget, options: FaithfulnessOptions) -> dict[str, Any]:
    """T6: erase the most important input tokens, by weight, gradient or at random, or keep only those."""
    steps = target.sample_steps(1, options.seed + 1)
    rng = Generator().manual_seed(options.seed)
    decisions: list[Decision] = []
    importance: dict[str, list[Tensor]] = {"weight": [], "gradient": [], "random": []}
    for probe in target.probes(steps):
        for row, item in enumerate(probe.items):
            decisions.append((item, probe.step))
            n_tokens = len(target.sources[item]) - 1  # without the end token
            importance["weight"].append(probe.token_weights[row][:n_tokens])
    for weights, gradient in zip(importance["weight"], target.saliency(decisions), strict=True):
        importance["gradient"].append(gradient[: len(weights)])
        importance["random"].append(torch.rand(len(weights), generator=rng))
    original = target.predict_from(decisions, [target.sources[item] for item, _ in decisions])
    results: dict[str, Any] = {"decisions": len(decisions)}
    for name, rankings in importance.items():
        comprehensiveness, sufficiency = _probability_losses(target, decisions, rankings, original)
        results[name] = {"comprehensiveness": comprehensiveness, "sufficiency": sufficiency}
    return results


def _probability_losses(
    target: ProbeTarget, decisions: Sequence[Decision], rankings: Sequence[Tensor], original: Tensor
) -> tuple[float, float]:
    """Return comprehensiveness and sufficiency (DeYoung 2020), means over `FRACTIONS`.

    Comprehensiveness is the drop of the decision's probability when the most important tokens are removed, sufficiency
    the drop when only they are kept.
    """
    sources: list[list[int]] = []
    repeated: list[Decision] = []
    numbers = []
    for number, (decision, ranking) in enumerate(zip(decisions, rankings, strict=True)):
        *tokens, end = target.sources[decision[0]]
        order = ranking.argsort(descending=True).tolist()
        for fraction in FRACTIONS:
            top = set(order[: max(1, math.ceil(fraction * len(tokens)))])
            sources += [
                [*(token for i, token in enumerate(tokens) if i not in top), end],
                [*(token for i, token in enumerate(tokens) if i in top), end],
            ]
            repeated += [decision] * 2
            numbers.append(number)
    changed = target.predict_from(repeated, sources)
    index = torch.tensor(numbers)
    classes = original.argmax(dim=-1)[index]
    before = original[index, classes]
    rows = torch.arange(len(index))
    without_top, only_top = changed[0::2], changed[1::2]
    return float((before - without_top[rows, classes]).mean()), float((before - only_top[rows, classes]).mean())


def _counterfactuals(target: ProbeTarget, options: FaithfulnessOptions) -> dict[str, Any]:
    """T4: search counterfactual weights for a sample of decisions."""
    sampled = target.sample_steps(1, options.seed + 2)
    steps: list[set[int]] = [set() for _ in sampled]
    order = torch.randperm(len(sampled), generator=Generator().manual_seed(options.seed)).tolist()
    for item in order[: options.counterfactuals]:
        steps[item] = sampled[item]
    rng = Generator().manual_seed(options.seed)
    results = [
        counterfactual(probe, rng, steps=options.search_steps, epsilon=EPSILON) for probe in target.probes(steps)
    ]
    divergence = torch.cat([result.divergence for result in results])
    return {"decisions": len(divergence), "max_jsd": _summarize(divergence)}

"""The honesty tests T1-T6 on any subject: a model and what it decided. Definitions: docs/measures.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Generator, Tensor

from heedful.data.tokenizer import END
from heedful.errors import DataError
from heedful.evaluation.divergence import tvd
from heedful.studies.honesty import (
    ORDERS,
    Erased,
    correlation,
    counterfactual,
    erasure,
    permutation,
    uniform,
)
from heedful.studies.probe import Decision, Subject
from heedful.tasks.use import processors
from heedful.tasks.writing import side_by_side

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)  # of the source, erased or kept (DeYoung 2020)
GROUP = 50  # sentences whose decisions are looked at together
LEFT_OUT = 40  # decisions whose sources are left out word by word together
T = TypeVar("T")
TESTS = ("correlation", "permutation", "uniform", "erasure", "words", "counterfactual")
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What to measure, and on how much of it."""

    tests: Sequence[str] = TESTS[:-1]
    steps: int = 4  # decisions drawn from each sentence
    counterfactuals: int = 100  # decisions of that search
    search: int = 500  # its steps
    seed: int = 1
    say: Say = field(default=lambda _: None)


def _each(count: int, work: Callable[[int], T]) -> list[T]:
    """Parts of the work side by side, as many threads as there are processors; answers in order."""
    found: dict[int, T] = {}

    def one(part: int) -> None:
        with torch.no_grad():  # a thread's own affair
            found[part] = work(part)

    side_by_side(one, range(count), processors())
    return [found[part] for part in range(count)]


def _groups(subject: Subject, steps: Sequence[set[int]]) -> list[list[set[int]]]:
    """The decisions in parts, sentences of like length together: of each part the steps, none elsewhere."""
    order = sorted((i for i, mine in enumerate(steps) if mine), key=lambda i: len(subject.sources[i]))
    parts = [set(order[first : first + GROUP]) for first in range(0, len(order), GROUP)]
    return [[mine if i in part else set() for i, mine in enumerate(steps)] for part in parts]


@torch.no_grad()
def honesty(subject: Subject, asked: Asked) -> dict[str, Any]:
    """The tests on decisions drawn from what the model itself decided."""
    whole = {"permutation", "uniform"} & set(asked.tests)
    if not subject.probed and not whole:
        raise DataError("this model decides nothing once: it is tested by --test permutation or uniform")
    steps = subject.chosen(asked.steps, asked.seed)
    found: dict[str, Any] = {
        "decisions": sum(map(len, steps)),
        "decision": subject.decision,
        "quality": subject.quality,
        "things": subject.things,
    }
    if whole:
        asked.say("whole outputs")
        found["outputs"] = subject.outputs(asked.seed)
    if not subject.probed:
        return found
    asked.say("decisions")
    found |= _gather(subject, steps, asked)
    if "correlation" in asked.tests:
        asked.say("correlation")
        found["correlation"] = _correlations(subject, steps)
    if "words" in asked.tests:
        asked.say("erased words")
        found["words"] = _words(subject, asked)
    if "counterfactual" in asked.tests:
        asked.say("counterfactual weights")
        found["counterfactual"] = _counterfactual(subject, asked)
    return found


class _Gathered(NamedTuple):
    """What was seen at some decisions."""

    largest: list[Tensor]
    permuted: list[Tensor]
    even: list[Tensor]
    erased: list[Erased]


def _gather(subject: Subject, steps: Sequence[set[int]], asked: Asked) -> dict[str, Any]:
    """T2, T3 and T5, decision by decision; every part draws from a seed of its own."""
    groups = _groups(subject, steps)

    def some(part: int) -> _Gathered:
        rng = Generator().manual_seed(asked.seed + 1_000 * part)
        found = _Gathered([], [], [], [])
        for probe in subject.probes(groups[part]):
            found.largest.append(probe.weights.mean(dim=1).amax(dim=-1))
            if "permutation" in asked.tests:
                found.permuted.append(permutation(probe, rng))
            if "uniform" in asked.tests:
                found.even.append(uniform(probe))
            if "erasure" in asked.tests:
                found.erased.append(erasure(probe, rng))
        return found

    parts = _each(len(groups), some)
    largest = [one for part in parts for one in part.largest]
    permuted = [one for part in parts for one in part.permuted]
    even = [one for part in parts for one in part.even]
    erased = [one for part in parts for one in part.erased]
    found: dict[str, Any] = {"largest weight": float(torch.cat(largest).mean())}
    if permuted:
        found["permutation"] = {"median TVD": _spread(torch.cat(permuted))}
    if even:
        found["uniform"] = {"TVD": _spread(torch.cat(even))}
    if erased:
        found["erasure"] = _erasures(erased)
    return found


def _spread(values: Tensor) -> dict[str, float]:
    return {
        "mean": float(values.mean()),
        "sd": float(values.std(unbiased=False)),
        "median": float(values.median()),
    }


def _erasures(erased: Sequence[Erased]) -> dict[str, Any]:
    best, other = (torch.cat([getattr(e, name) for e in erased]) for name in ("flips_best", "flips_random"))
    table = {
        "both": float((best & other).float().mean()),
        "only the best": float((best & ~other).float().mean()),
        "only the random one": float((~best & other).float().mean()),
        "neither": float((~best & ~other).float().mean()),
    }
    orders = {}
    for name in ORDERS:
        share = torch.cat([e.share[name] for e in erased])
        changed = ~share.isnan()
        orders[name] = {
            "share erased": float(share[changed].mean()) if bool(changed.any()) else None,
            "never changed": float((~changed).float().mean()),
        }
    return {
        "JSD best less random": float(torch.cat([e.divergence for e in erased]).mean()),
        "decision changes": table,
        "until it changes": orders,
    }


def _correlations(subject: Subject, steps: Sequence[set[int]]) -> dict[str, Any]:
    """T1: weights, gradients and leave-one-out, each with each, over real words of the source."""
    decisions: list[Decision] = []
    weights, valid = [], []
    own: list[Tensor] = []
    for probe in subject.probes(steps):
        for row, sentence in enumerate(probe.sentences):
            decisions.append((sentence, probe.step))
            weights.append(probe.shares[row])
            valid.append(probe.valid[row])
            own.append(probe.p[row])
    gradients = subject.saliency(decisions)
    left_out = _left_out(subject, decisions, own)
    real = [mask[: len(g)] for mask, g in zip(valid, gradients, strict=True)]
    kept = {
        "weight": [w[: len(m)][m] for w, m in zip(weights, real, strict=True)],
        "gradient": [g[m] for g, m in zip(gradients, real, strict=True)],
        "leave-one-out": [o[: len(m)][m] for o, m in zip(left_out, real, strict=True)],
    }
    pairs = (("weight", "gradient"), ("weight", "leave-one-out"), ("gradient", "leave-one-out"))
    return {f"{a} and {b}": correlation(kept[a], kept[b])._asdict() for a, b in pairs}


def _left_out(subject: Subject, decisions: Sequence[Decision], own: Sequence[Tensor]) -> list[Tensor]:
    """For each decision and source position the TVD when that token is not there."""
    firsts = range(0, len(decisions), LEFT_OUT)

    def some(part: int) -> list[Tensor]:
        found, first = [], firsts[part]
        mine = decisions[first : first + LEFT_OUT]
        sources: list[list[int]] = []
        asked: list[Decision] = []
        for decision in mine:
            source = list(subject.sources[decision[0]])
            for at in range(len(source)):
                sources.append(source[:at] + source[at + 1 :] or [END])
                asked.append(decision)
        p = subject.again(asked, sources)
        start = 0
        for place, (sentence, _) in enumerate(mine):
            count = len(subject.sources[sentence])
            found.append(tvd(p[start : start + count], own[first + place]))
            start += count
        return found

    return [one for part in _each(len(firsts), some) for one in part]


def _words(subject: Subject, asked: Asked) -> dict[str, Any]:
    """T6: erase the source tokens with most weight (or gradient, or any), or keep nothing else."""
    steps = subject.chosen(1, asked.seed + 1)
    rng = Generator().manual_seed(asked.seed)
    decisions: list[Decision] = []
    rankings = []
    for probe in subject.probes(steps):
        for row, sentence in enumerate(probe.sentences):
            decisions.append((sentence, probe.step))
            count = len(subject.sources[sentence]) - 1  # without its end
            rankings.append({"weight": probe.shares[row][:count]})
    for ranking, slope in zip(rankings, subject.saliency(decisions), strict=True):
        count = len(ranking["weight"])
        ranking["gradient"] = slope[:count]
        ranking["random"] = torch.rand(count, generator=rng)
    whole = subject.again(decisions, [subject.sources[sentence] for sentence, _ in decisions])
    said = [int(p.argmax()) for p in whole]
    found = {}
    for name in ("weight", "gradient", "random"):
        changes = _erased_words(subject, decisions, [r[name] for r in rankings], said, whole)
        found[name] = {"comprehensiveness": changes[0], "sufficiency": changes[1]}
    return {"decisions": len(decisions), "erased": "removed", **found}


def _erased_words(
    subject: Subject,
    decisions: Sequence[Decision],
    rankings: Sequence[Tensor],
    said: Sequence[int],
    whole: Tensor,
) -> tuple[float, float]:
    """The mean loss of probability over all shares, without the best tokens and with them alone."""
    sources: list[list[int]] = []
    asked: list[Decision] = []
    places = []
    for number, (decision, ranking) in enumerate(zip(decisions, rankings, strict=True)):
        *body, end = subject.sources[decision[0]]
        order = ranking.argsort(descending=True).tolist()
        for share in SHARES:
            best = set(order[: max(1, math.ceil(share * len(body)))])
            sources += [
                [*(i for at, i in enumerate(body) if at not in best), end],
                [*(i for at, i in enumerate(body) if at in best), end],
            ]
            asked += [decision] * 2
            places.append(number)
    p = subject.again(asked, sources)
    at = torch.tensor(places)
    words = torch.tensor([said[number] for number in places])
    before = whole[at, words]
    without, alone = p[0::2], p[1::2]
    rows = torch.arange(len(at))
    return float((before - without[rows, words]).mean()), float((before - alone[rows, words]).mean())


def _counterfactual(subject: Subject, asked: Asked) -> dict[str, Any]:
    """T4 on some decisions."""
    drawn = subject.chosen(1, asked.seed + 2)
    chosen: list[set[int]] = [set() for _ in drawn]
    order = torch.randperm(len(drawn), generator=Generator().manual_seed(asked.seed)).tolist()
    for sentence in order[: asked.counterfactuals]:
        chosen[sentence] = drawn[sentence]
    rng = Generator().manual_seed(asked.seed)
    found = [counterfactual(probe, rng, steps=asked.search) for probe in subject.probes(chosen)]
    values = torch.cat([f.divergence for f in found])
    return {"decisions": len(values), "largest JSD within 0.01": _spread(values)}

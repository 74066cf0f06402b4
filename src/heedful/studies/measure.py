"""`heedful measure`: where a model looks, how that agrees with gold, and whether it matters.

What is said of looks is where a model read from, never why it wrote what it wrote.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor

from heedful.attention import Detail, Watch
from heedful.config import DecodingConfig
from heedful.data.batch import Encoded, collate
from heedful.data.readers import TextPair
from heedful.data.tokenizer import END
from heedful.decoding import Forced, Hypothesis, search
from heedful.errors import DataError, TraceError
from heedful.evaluation import evaluate
from heedful.evaluation.alignment import alignment_error, diagonal
from heedful.evaluation.divergence import tvd
from heedful.record import NO_WORD, Edit, Links, entropy_ratio, folded_words, word_links
from heedful.studies.honesty import (
    ORDERS,
    Erased,
    correlation,
    counterfactual,
    erasure,
    permutation,
    uniform,
)
from heedful.studies.probe import Corpus, chosen_steps, saliency, scored, text_probes
from heedful.tasks.text import TextModel, answer
from heedful.trace.whatif import change_of

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)  # of the source, erased or kept (DeYoung 2020)
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


class Looked(NamedTuple):
    """One sentence written with its weights: (step, position), mean over heads; words of both sides."""

    weights: np.ndarray
    source: list[int]
    target: list[int]


def measure(
    opened: TextModel, pairs: Sequence[TextPair], asked: Asked, gold: Sequence[Links] | None = None
) -> dict[str, Any]:
    """Everything that was asked for, as plain numbers."""
    if opened.model.alignment is None:
        raise TraceError(f"{opened.name} has no attention: its decoder never looks back")
    if gold is not None and len(gold) != len(pairs):
        raise DataError(f"{len(pairs):,} pairs, but {len(gold):,} lines of gold links")
    looked = forced_looks(opened, pairs)
    found: dict[str, Any] = {"model": opened.name, "sentences": len(pairs), "looks": looking(looked)}
    if gold is not None:
        found["gold"] = against_gold(looked, gold, opened.model.shift)
    if asked.tests:
        found["tests"] = honesty(opened, pairs, asked)
    return found


def forced_looks(opened: TextModel, pairs: Sequence[TextPair]) -> list[Looked]:
    """Where the model looks while it writes the references."""
    model, words = opened.model, opened.words
    site = model.alignment
    assert site is not None
    ids = [Encoded(words.source.encode(p.source), words.target.encode(p.target)) for p in pairs]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i].source))
    found: dict[int, Looked] = {}
    for first in range(0, len(order), 50):
        rows = order[first : first + 50]
        best = search(
            model, collate([ids[row] for row in rows]), Forced(), Watch(Detail.WEIGHTS, frozenset({site}))
        ).best
        for row, (hypothesis,) in zip(rows, best, strict=True):
            weights = hypothesis.looks[site].mean(dim=1).double().numpy()
            of_source, of_target = words.source.words(ids[row].source), words.target.words(ids[row].target)
            found[row] = Looked(weights, of_source, of_target)
    return [found[i] for i in range(len(pairs))]


def looking(looked: Sequence[Looked]) -> dict[str, float]:
    """How the looks are, whatever the gold says."""
    entropy, sink, unread, forward, steps, words = 0.0, 0.0, 0, 0, 0, 0
    moves = 0
    for weights, source, target in looked:
        entropy += float(entropy_ratio(weights).sum())
        rows = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)
        special = [at for at, word in enumerate(source) if word == NO_WORD]
        sink += float(rows[:, special].sum())
        steps += len(rows)
        folded = folded_words(weights, source, target)
        if folded.size:
            unread += int((folded.sum(axis=0) < 0.1).sum())
            words += folded.shape[1]
            best = folded.argmax(axis=1)
            forward += int((np.diff(best) >= 0).sum())
            moves += len(best) - 1
    return {
        "entropy ratio": entropy / max(1, steps),
        "weight on special tokens": sink / max(1, steps),
        "source words hardly read": unread / max(1, words),
        "steps that do not go back": forward / max(1, moves),
    }


def against_gold(looked: Sequence[Looked], gold: Sequence[Links], shift: int) -> dict[str, Any]:
    """Error rate, precision and recall of both readings, and baselines that see no weights."""
    found: dict[str, Any] = {}
    for name, later in (("naive", 0), ("shift", shift)):
        links = [word_links(mine.weights, mine.source, mine.target, later) for mine in looked]
        found[name] = alignment_error(links, gold)._asdict()
    sizes = [(max(m.source, default=-1) + 1, max(m.target, default=-1) + 1) for m in looked]
    found["diagonal"] = alignment_error([diagonal(*size) for size in sizes], gold)._asdict()
    mass, even, count = 0.0, 0.0, 0
    for mine, (sure, possible) in zip(looked, gold, strict=True):
        folded = folded_words(mine.weights, mine.source, mine.target)
        for target in range(folded.shape[0]):
            linked = [s for s, t in sure | possible if t == target and s < folded.shape[1]]
            if linked:
                mass += float(folded[target, linked].sum())
                even += len(linked) / folded.shape[1]
                count += 1
    found["mass on gold"] = mass / max(1, count)
    found["mass on gold, uniform"] = even / max(1, count)
    return found


@torch.no_grad()
def honesty(opened: TextModel, pairs: Sequence[TextPair], asked: Asked) -> dict[str, Any]:
    """The tests T1-T6 on decisions drawn from the model's own outputs."""
    model, words = opened.model, opened.words
    how = DecodingConfig(max_length=opened.recipe.decoding.max_length)
    lines = [pair.source for pair in pairs]
    own = [best[0] for best in answer(model, lines, words, how)]
    corpus = Corpus([words.source.encode(line) for line in lines], [h.tokens for h in own])
    steps = chosen_steps(corpus, asked.steps, asked.seed)
    found: dict[str, Any] = {"decisions": sum(map(len, steps))}
    rng = Generator().manual_seed(asked.seed)
    asked.say("decisions")
    gathered = _gather(opened, corpus, steps, asked, rng)
    found |= gathered
    if {"permutation", "uniform"} & set(asked.tests):
        asked.say("whole outputs")
        found["outputs"] = _outputs(opened, pairs, own, asked)
    if "correlation" in asked.tests:
        asked.say("correlation")
        found["correlation"] = _correlations(opened, corpus, steps)
    if "words" in asked.tests:
        asked.say("erased words")
        found["words"] = _words(opened, corpus, asked)
    if "counterfactual" in asked.tests:
        asked.say("counterfactual weights")
        found["counterfactual"] = _counterfactual(opened, corpus, asked)
    return found


def _gather(
    opened: TextModel, corpus: Corpus, steps: Sequence[set[int]], asked: Asked, rng: Generator
) -> dict[str, Any]:
    """T2, T3 and T5, decision by decision."""
    permuted, even, largest = [], [], []
    erased: list[Erased] = []
    for probe in text_probes(opened.model, corpus, steps):
        largest.append(probe.weights.mean(dim=1).amax(dim=-1))
        if "permutation" in asked.tests:
            permuted.append(permutation(probe, rng))
        if "uniform" in asked.tests:
            even.append(uniform(probe))
        if "erasure" in asked.tests:
            erased.append(erasure(probe, rng))
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


def _outputs(
    opened: TextModel, pairs: Sequence[TextPair], own: Sequence[Hypothesis], asked: Asked
) -> dict[str, float]:
    """BLEU of whole outputs when every step's weights are uniform, or permuted, in all heads."""
    model, words = opened.model, opened.words
    lines, references = [p.source for p in pairs], [p.target for p in pairs]
    how = DecodingConfig(max_length=opened.recipe.decoding.max_length)

    def bleu(found: Sequence[Hypothesis]) -> float:
        texts = [words.target.decode(h.tokens) for h in found]
        return evaluate(["bleu"], texts, references)[0].value

    scores = {"as it is": bleu(own)}
    for op in ("uniform", "permute"):
        change = change_of([Edit(op=op)], model.alignment, seed=asked.seed)
        found = answer(model, lines, words, how, Watch(Detail.NONE, edit=change))
        scores[op] = bleu([best[0] for best in found])
    return scores


def _correlations(opened: TextModel, corpus: Corpus, steps: Sequence[set[int]]) -> dict[str, Any]:
    """T1: weights, gradients and leave-one-out, each with each, over real words of the source."""
    model = opened.model
    decisions, weights, valid = [], [], []
    own: list[Tensor] = []
    for probe in text_probes(model, corpus, steps):
        for row, sentence in enumerate(probe.sentences):
            decisions.append((sentence, probe.step))
            weights.append(probe.weights[row].mean(dim=0))
            valid.append(probe.valid[row])
            own.append(probe.p[row])
    gradients = saliency(model, corpus, decisions)
    left_out = _left_out(opened, corpus, decisions, own)
    real = [mask[: len(g)] for mask, g in zip(valid, gradients, strict=True)]
    kept = {
        "weight": [w[: len(m)][m] for w, m in zip(weights, real, strict=True)],
        "gradient": [g[m] for g, m in zip(gradients, real, strict=True)],
        "leave-one-out": [o[m] for o, m in zip(left_out, real, strict=True)],
    }
    pairs = (("weight", "gradient"), ("weight", "leave-one-out"), ("gradient", "leave-one-out"))
    return {f"{a} and {b}": correlation(kept[a], kept[b])._asdict() for a, b in pairs}


def _left_out(
    opened: TextModel, corpus: Corpus, decisions: Sequence[tuple[int, int]], own: Sequence[Tensor]
) -> list[Tensor]:
    """For each decision and source position the TVD when that token is not there."""
    found = []
    for first in range(0, len(decisions), 40):
        some = decisions[first : first + 40]
        sources, prefixes = [], []
        for sentence, step in some:
            source = list(corpus.sources[sentence])
            for at in range(len(source)):
                sources.append(source[:at] + source[at + 1 :])
                prefixes.append(corpus.written[sentence][:step])
        p = scored(opened.model, [s or [END] for s in sources], prefixes)
        start = 0
        for place, (sentence, _) in enumerate(some):
            count = len(corpus.sources[sentence])
            found.append(tvd(p[start : start + count], own[first + place]))
            start += count
    return found


def _words(opened: TextModel, corpus: Corpus, asked: Asked) -> dict[str, Any]:
    """T6: erase the source tokens with most weight (or gradient, or any), or keep nothing else."""
    model = opened.model
    steps = chosen_steps(corpus, 1, asked.seed + 1)
    rng = Generator().manual_seed(asked.seed)
    decisions, rankings = [], []
    for probe in text_probes(model, corpus, steps):
        for row, sentence in enumerate(probe.sentences):
            decisions.append((sentence, probe.step))
            count = len(corpus.sources[sentence]) - 1  # without its end
            rankings.append({"weight": probe.weights[row].mean(dim=0)[:count]})
    for ranking, slope in zip(rankings, saliency(model, corpus, decisions), strict=True):
        count = len(ranking["weight"])
        ranking["gradient"] = slope[:count]
        ranking["random"] = torch.rand(count, generator=rng)
    whole = scored(
        model, [corpus.sources[s] for s, _ in decisions], [corpus.written[s][:t] for s, t in decisions]
    )
    said = [int(p.argmax()) for p in whole]
    found = {}
    for name in ("weight", "gradient", "random"):
        changes = _erased_words(opened, corpus, decisions, [r[name] for r in rankings], said, whole)
        found[name] = {"comprehensiveness": changes[0], "sufficiency": changes[1]}
    return {"decisions": len(decisions), "erased": "removed", **found}


def _erased_words(
    opened: TextModel,
    corpus: Corpus,
    decisions: Sequence[tuple[int, int]],
    rankings: Sequence[Tensor],
    said: Sequence[int],
    whole: Tensor,
) -> tuple[float, float]:
    """The mean loss of probability over all shares, without the best tokens and with them alone."""
    sources, prefixes, places = [], [], []
    for number, ((sentence, step), ranking) in enumerate(zip(decisions, rankings, strict=True)):
        *body, end = corpus.sources[sentence]
        order = ranking.argsort(descending=True).tolist()
        for share in SHARES:
            best = set(order[: max(1, math.ceil(share * len(body)))])
            sources += [
                [*(i for at, i in enumerate(body) if at not in best), end],
                [*(i for at, i in enumerate(body) if at in best), end],
            ]
            prefixes += [corpus.written[sentence][:step]] * 2
            places.append(number)
    p = scored(opened.model, sources, prefixes)
    at = torch.tensor(places)
    words = torch.tensor([said[number] for number in places])
    before = whole[at, words]
    without, alone = p[0::2], p[1::2]
    rows = torch.arange(len(at))
    return float((before - without[rows, words]).mean()), float((before - alone[rows, words]).mean())


def _counterfactual(opened: TextModel, corpus: Corpus, asked: Asked) -> dict[str, Any]:
    """T4 on some decisions."""
    chosen: list[set[int]] = [set() for _ in corpus.written]
    drawn = chosen_steps(corpus, 1, asked.seed + 2)
    order = torch.randperm(len(drawn), generator=Generator().manual_seed(asked.seed)).tolist()
    for sentence in order[: asked.counterfactuals]:
        chosen[sentence] = drawn[sentence]
    some = [i for i, steps in enumerate(chosen) if steps]
    part = Corpus([corpus.sources[i] for i in some], [corpus.written[i] for i in some])
    rng = Generator().manual_seed(asked.seed)
    found = [
        counterfactual(probe, rng, steps=asked.search)
        for probe in text_probes(opened.model, part, [chosen[i] for i in some])
    ]
    values = torch.cat([f.divergence for f in found])
    return {"decisions": len(values), "largest JSD within 0.01": _spread(values)}

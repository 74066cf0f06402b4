"""Beam search, batched over sentences; attention follows the hypotheses by parent pointers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.attention import Detail, Watch
from heedful.data.batch import Padded, TextBatch
from heedful.data.tokenizer import END
from heedful.decoding.types import Beam, Hypothesis
from heedful.decoding.words import banned, join_looks, likeliest, own_sites, step_weights
from heedful.models import Next, State, Writer

EPSILON = 1e-10  # of the coverage penalty: a source word never looked at costs log of this
DEAD = float("-inf")


def length_penalty(length: int, alpha: float) -> float:
    """`((5 + |Y|) / 6)^alpha` (Wu 2016, eq. 14).

    >>> length_penalty(1, 0.6), round(length_penalty(13, 1.0), 2)
    (1.0, 3.0)
    """
    return float(((5 + length) / 6) ** alpha)


class Step(NamedTuple):
    """What one step chose: for each sentence still searched, `beam` tokens and the rows they came from."""

    place: Mapping[int, int]  # sentence -> its place in this step
    tokens: Tensor  # (place, beam)
    parents: Tensor  # (place, beam): a row of the same sentence
    logp: Tensor  # (place, beam): of the token alone
    weights: Mapping[str, Tensor]  # (place, beam, head, key): of the rows before the choice


class Ending(NamedTuple):
    """The last token of a hypothesis: from it the rest is found by walking back."""

    score: float
    step: int
    parent: int
    logp: float
    token: int


@dataclass(slots=True)
class Search:
    """The search of one batch: the steps so far and, for each sentence, what has finished."""

    how: Beam
    lengths: list[int]
    steps: list[Step] = field(default_factory=list)
    done: list[list[Ending]] = field(default_factory=list)


def beam_search(
    model: Writer, state: State, batch: TextBatch, how: Beam, watch: Watch, prefix: Padded | None = None
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses of each sentence, best first."""
    search = searched(model, state, batch, how, watch, prefix)
    own = own_sites(model.sites)
    return [returned(search, sentence, own) for sentence in range(batch.size)]


def searched(
    model: Writer, state: State, batch: TextBatch, how: Beam, watch: Watch, prefix: Padded | None = None
) -> Search:
    """The whole search, with all that it kept on the way.

    A sentence stops when no live hypothesis, ended as it stands, would beat the worst that would be returned.
    With `exact` it stops when none ever can: log P only falls, so a live one reaches at best its present
    log P under the kindest length penalty to come.
    """
    if model.alignment is None:  # nothing is looked at, so nothing can be left uncovered
        how = replace(how, beta=0.0)
    site = model.alignment if how.beta else None
    if site is not None and watch.detail_at(site) is Detail.NONE:
        sites = None if watch.sites is None or watch.detail is Detail.NONE else watch.sites | {site}
        watch = replace(watch, detail=max(watch.detail, Detail.WEIGHTS), sites=sites)
    device = batch.source.keep.device
    search = Search(how, batch.source.lengths.tolist(), done=[[] for _ in range(batch.size)])
    alive = torch.arange(batch.size, device=device)
    state = state.widened(how.size)
    totals = torch.full((batch.size, how.size), DEAD, device=device)
    totals[:, 0] = 0.0
    covered = torch.zeros(batch.size, how.size, batch.source.keep.shape[1], device=device)
    last = torch.full((batch.size * how.size,), model.first, device=device)
    for t in range(how.max_length):
        found = _ahead(model, state, last, how.size, watch, prefix, alive, t)
        ahead = Ahead(*(part.view(len(alive), how.size, -1) for part in (found.words, found.logp)))
        weights = {
            name: w.view(len(alive), how.size, *w.shape[1:]) for name, w in step_weights(found.looks).items()
        }
        seen = covered + weights[site].mean(dim=2) if site is not None else covered
        totals, tokens, parents = _choose(search, totals, ahead, alive.tolist(), weights, seen, t)
        covered = seen.gather(1, parents[..., None].expand(-1, -1, seen.shape[-1]))
        going = _going(search, totals, alive.tolist(), t)
        if not going:
            break
        keep = torch.tensor(going, device=device)
        rows = (keep[:, None] * how.size + parents[keep]).flatten()
        state = found.state.select(rows, keep if len(going) < len(alive) else None, how.size)
        totals, covered, alive = totals[keep], covered[keep], alive[keep]
        last = tokens[keep].flatten()
    return search


class Ahead(NamedTuple):
    """The words each row may go on with: no more of them than the beam is wide can be chosen."""

    words: Tensor  # (place, beam, word)
    logp: Tensor


def _ahead(
    model: Writer,
    state: State,
    last: Tensor,
    size: int,
    watch: Watch,
    prefix: Padded | None,
    alive: Tensor,
    t: int,
) -> Next:
    """Each row's likeliest words; every word but the prefix's is impossible, where a sentence has one."""
    if prefix is None or t >= prefix.ids.shape[1]:
        return likeliest(model, state, last, size, watch)
    stepped = model.step(state, last, watch)
    scores = banned(stepped)
    forced, given = prefix.keep[alive, t], prefix.ids[alive, t]
    other = torch.arange(scores.shape[-1], device=scores.device) != given[:, None]
    wrong = (forced[:, None] & other).repeat_interleave(size, dim=0)
    logp, words = scores.log_softmax(dim=-1).masked_fill(wrong, DEAD).topk(min(size, scores.shape[-1]))
    return Next(words, logp, stepped.state, stepped.looks)


def _choose(
    search: Search,
    totals: Tensor,
    ahead: Ahead,
    alive: list[int],
    weights: Mapping[str, Tensor],
    seen: Tensor,
    t: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """The best continuations, as many as the beam is wide. Those that end are put aside, the others go on.

    So a beam of one is greedy search, whatever the length penalty.
    """
    size, count = ahead.words.shape[1:]
    best = (totals[..., None] + ahead.logp).flatten(1).topk(size, dim=1)
    tokens, parents = ahead.words.flatten(1).gather(1, best.indices), best.indices // count
    own = ahead.logp.flatten(1).gather(1, best.indices)
    ends = (tokens == END) & best.values.isfinite()
    for place, rank in ends.nonzero().tolist():
        parent, total = int(parents[place, rank]), float(best.values[place, rank])
        source = search.lengths[alive[place]]
        score = _score(search.how, total, t + 1, seen[place, parent], source)
        ending = Ending(score, t, parent, float(own[place, rank]), END)
        search.done[alive[place]].append(ending)
    live = best.values.masked_fill(tokens == END, DEAD)
    search.steps.append(
        Step({sentence: place for place, sentence in enumerate(alive)}, tokens, parents, own, weights)
    )
    return live, tokens, parents


def _score(how: Beam, total: float, length: int, seen: Tensor, source: int) -> float:
    score = total / length_penalty(length, how.alpha)
    if how.beta:
        score += how.beta * float(seen[:source].clamp(EPSILON, 1.0).log().sum())
    return score


def _going(search: Search, totals: Tensor, alive: list[int], t: int) -> list[int]:
    """The places of sentences whose live hypotheses may still enter what is returned."""
    how = search.how
    kindest = length_penalty(t + 2, how.alpha)
    if how.exact:
        kindest = max(kindest, length_penalty(how.max_length, how.alpha))
    bounds = (totals.amax(dim=1) / kindest).tolist()
    going = []
    for place, sentence in enumerate(alive):
        done = sorted((d.score for d in search.done[sentence]), reverse=True)
        worst = done[how.n_best - 1] if len(done) >= how.n_best else DEAD
        if math.isfinite(bounds[place]) and bounds[place] > worst:
            going.append(place)
    return going


def returned(search: Search, sentence: int, own: frozenset[str]) -> list[Hypothesis]:
    """The best finished hypotheses; live ones fill up where too few have ended in time."""
    best = sorted(search.done[sentence], key=lambda d: -d.score)[: search.how.n_best]
    found = [_walk(search, sentence, own, ending) for ending in best]
    last = next((t for t in reversed(range(len(search.steps))) if sentence in search.steps[t].place), None)
    if len(found) < search.how.n_best and last is not None:
        found += _unfinished(search, sentence, own, last)[: search.how.n_best - len(found)]
    return found


def _unfinished(search: Search, sentence: int, own: frozenset[str], t: int) -> list[Hypothesis]:
    step = search.steps[t]
    place = step.place[sentence]
    found = []
    for row in range(search.how.size):
        value = float(step.logp[place, row])
        if math.isfinite(value):
            parent, token = int(step.parents[place, row]), int(step.tokens[place, row])
            found.append(_walk(search, sentence, own, Ending(DEAD, t, parent, value, token)))
    scored = [replace(h, score=h.logp / length_penalty(len(h.tokens), search.how.alpha)) for h in found]
    return sorted((h for h in scored if math.isfinite(h.logp)), key=lambda h: -h.score)


def _walk(search: Search, sentence: int, own: frozenset[str], end: Ending) -> Hypothesis:
    """Back along the parents, once, at the end."""
    tokens, logps, weights = [end.token], [end.logp], []
    row = end.parent
    for t in range(end.step, -1, -1):
        step = search.steps[t]
        place = step.place[sentence]
        if t < end.step:
            tokens.append(int(step.tokens[place, row]))
            logps.append(float(step.logp[place, row]))
            row = int(step.parents[place, row])
        if step.weights:
            weights.append({site: w[place, row] for site, w in step.weights.items()})
    tokens.reverse()
    logps.reverse()
    weights.reverse()
    looks = join_looks(weights, search.lengths[sentence], own)
    return Hypothesis(tuple(tokens), sum(logps), end.score, tuple(logps), end.token == END, looks)

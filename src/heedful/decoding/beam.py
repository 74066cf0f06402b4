"""Beam search, batched over sentences; attention weights follow the hypotheses by parent pointers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.attention import Detail, Hooks
from heedful.config import DecodingOptions
from heedful.data.batch import Padded, TextBatch
from heedful.data.tokenizer import END
from heedful.decoding.steps import SelfSites, join_weights, step_weights
from heedful.decoding.types import Hypothesis
from heedful.models import AutoregressiveModel, NextTokens, State, next_token_logits

EPSILON = 1e-10  # coverage penalty: a source position without any attention costs log of this
DEAD = float("-inf")


def length_penalty(length: int, exponent: float) -> float:
    """Return `((5 + |Y|) / 6) ** exponent` (Wu 2016, eq. 14).

    >>> length_penalty(1, 0.6), round(length_penalty(13, 1.0), 2)
    (1.0, 3.0)
    """
    return float(((5 + length) / 6) ** exponent)


class BeamStep(NamedTuple):
    """One step: for each unfinished sentence `beam` tokens and the rows that they continue."""

    index_of: Mapping[int, int]  # sentence -> its index in this step
    tokens: Tensor  # (index, beam)
    parents: Tensor  # (index, beam): a row of the same sentence
    logp: Tensor  # (index, beam): log-probability of the token alone
    weights: Mapping[str, Tensor]  # (index, beam, head, key): weights of the parent rows


class HypothesisEnd(NamedTuple):
    """The last token of a hypothesis; the tokens before it follow from the parent pointers."""

    score: float
    step: int
    parent: int
    logp: float
    token: int


@dataclass(slots=True)
class BeamSearch:
    """The beam search of one batch: all steps so far, and the finished hypotheses of each sentence."""

    options: DecodingOptions
    source_lengths: list[int]
    steps: list[BeamStep] = field(default_factory=list)
    finished: list[list[HypothesisEnd]] = field(default_factory=list)


def run_beam_search(
    model: AutoregressiveModel,
    state: State,
    batch: TextBatch,
    options: DecodingOptions,
    hooks: Hooks,
    prefix: Padded | None = None,
) -> BeamSearch:
    """Run beam search and return all of its steps.

    A sentence stops when no live hypothesis, if it ended now, would score above the worst one to be returned.
    With `exact` it stops when none ever can: log P only falls, so a live hypothesis reaches at best its
    present log P under the most favorable length penalty to come.
    """
    if model.alignment_site is None:  # without attention there is no coverage
        options = options.model_copy(update={"coverage_penalty": 0.0})
    site = model.alignment_site if options.coverage_penalty else None
    if site is not None and hooks.detail_at(site) is Detail.NONE:
        sites = None if hooks.sites is None or hooks.detail is Detail.NONE else hooks.sites | {site}
        hooks = replace(hooks, detail=max(hooks.detail, Detail.WEIGHTS), sites=sites)
    device, size = batch.source.keep.device, options.beam
    beam = BeamSearch(options, batch.source.lengths.tolist(), finished=[[] for _ in range(batch.size)])
    alive = torch.arange(batch.size, device=device)
    state = state.expand_to_beam(size)
    totals = torch.full((batch.size, size), DEAD, device=device)
    totals[:, 0] = 0.0
    coverage = torch.zeros(batch.size, size, batch.source.keep.shape[1], device=device)
    last = torch.full((batch.size * size,), model.start_token, device=device)
    for t in range(options.max_length):
        best = _top_tokens(model, state, last, size, hooks, prefix, alive, t)
        candidates = Candidates(*(part.view(len(alive), size, -1) for part in (best.tokens, best.logp)))
        weights = {name: w.view(len(alive), size, *w.shape[1:]) for name, w in step_weights(best.attentions).items()}
        attended = coverage + weights[site].mean(dim=2) if site is not None else coverage
        totals, tokens, parents = _advance(beam, totals, candidates, alive.tolist(), weights, attended, t)
        coverage = attended.gather(1, parents[..., None].expand(-1, -1, attended.shape[-1]))
        live = _live_sentences(beam, totals, alive.tolist(), t)
        if not live:
            break
        keep = torch.tensor(live, device=device)
        rows = (keep[:, None] * size + parents[keep]).flatten()
        state = best.state.select(rows, keep if len(live) < len(alive) else None, size)
        totals, coverage, alive = totals[keep], coverage[keep], alive[keep]
        last = tokens[keep].flatten()
    return beam


class Candidates(NamedTuple):
    """The tokens that may continue each row: at most `beam` of them can be chosen."""

    tokens: Tensor  # (index, beam, candidate)
    logp: Tensor


def _top_tokens(
    model: AutoregressiveModel,
    state: State,
    last: Tensor,
    size: int,
    hooks: Hooks,
    prefix: Padded | None,
    alive: Tensor,
    t: int,
) -> NextTokens:
    """Return each row's most likely tokens; within a prefix every other token is impossible."""
    if prefix is None or t >= prefix.ids.shape[1]:
        return model.top_next_tokens(state, last, size, hooks)
    step_output = model.step(state, last, hooks)
    logits = next_token_logits(step_output)
    forced, ids = prefix.keep[alive, t], prefix.ids[alive, t]
    other = torch.arange(logits.shape[-1], device=logits.device) != ids[:, None]
    impossible = (forced[:, None] & other).repeat_interleave(size, dim=0)
    logp, tokens = logits.log_softmax(dim=-1).masked_fill(impossible, DEAD).topk(min(size, logits.shape[-1]))
    return NextTokens(tokens, logp, step_output.state, step_output.attentions)


def _advance(
    beam: BeamSearch,
    totals: Tensor,
    candidates: Candidates,
    alive: list[int],
    weights: Mapping[str, Tensor],
    attended: Tensor,
    t: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Keep the `beam` best continuations per sentence; those that end are finished, the others stay live.

    So a beam of one is greedy search, whatever the length penalty.
    """
    size, count = candidates.tokens.shape[1:]
    best = (totals[..., None] + candidates.logp).flatten(1).topk(size, dim=1)
    tokens, parents = candidates.tokens.flatten(1).gather(1, best.indices), best.indices // count
    logp = candidates.logp.flatten(1).gather(1, best.indices)
    ends = (tokens == END) & best.values.isfinite()
    for index, rank in ends.nonzero().tolist():
        parent, total = int(parents[index, rank]), float(best.values[index, rank])
        source_length = beam.source_lengths[alive[index]]
        score = _score(beam.options, total, t + 1, attended[index, parent], source_length)
        beam.finished[alive[index]].append(HypothesisEnd(score, t, parent, float(logp[index, rank]), END))
    live = best.values.masked_fill(tokens == END, DEAD)
    indices = {sentence: index for index, sentence in enumerate(alive)}
    beam.steps.append(BeamStep(indices, tokens, parents, logp, weights))
    return live, tokens, parents


def _score(options: DecodingOptions, total: float, length: int, attended: Tensor, source_length: int) -> float:
    score = total / length_penalty(length, options.length_penalty)
    if options.coverage_penalty:
        score += options.coverage_penalty * float(attended[:source_length].clamp(EPSILON, 1.0).log().sum())
    return score


def _live_sentences(beam: BeamSearch, totals: Tensor, alive: list[int], t: int) -> list[int]:
    """Return the indices of sentences whose live hypotheses may still enter the result."""
    options = beam.options
    penalty = length_penalty(t + 2, options.length_penalty)
    if options.exact:
        penalty = max(penalty, length_penalty(options.max_length, options.length_penalty))
    bounds = (totals.amax(dim=1) / penalty).tolist()
    live = []
    for index, sentence in enumerate(alive):
        scores = sorted((end.score for end in beam.finished[sentence]), reverse=True)
        worst = scores[options.n_best - 1] if len(scores) >= options.n_best else DEAD
        if math.isfinite(bounds[index]) and bounds[index] > worst:
            live.append(index)
    return live


def best_hypotheses(beam: BeamSearch, sentence: int, self_sites: SelfSites) -> list[Hypothesis]:
    """Return the n best finished hypotheses; live ones follow where too few have finished."""
    n_best = beam.options.n_best
    ends = sorted(beam.finished[sentence], key=lambda end: -end.score)[:n_best]
    hypotheses = [_backtrack(beam, sentence, self_sites, end) for end in ends]
    last = next((t for t in reversed(range(len(beam.steps))) if sentence in beam.steps[t].index_of), None)
    if len(hypotheses) < n_best and last is not None:
        hypotheses += _live_hypotheses(beam, sentence, self_sites, last)[: n_best - len(hypotheses)]
    return hypotheses


def _live_hypotheses(beam: BeamSearch, sentence: int, self_sites: SelfSites, t: int) -> list[Hypothesis]:
    step = beam.steps[t]
    index = step.index_of[sentence]
    hypotheses = []
    for row in range(beam.options.beam):
        logp = float(step.logp[index, row])
        if math.isfinite(logp):
            parent, token = int(step.parents[index, row]), int(step.tokens[index, row])
            hypothesis = _backtrack(beam, sentence, self_sites, HypothesisEnd(DEAD, t, parent, logp, token))
            penalty = length_penalty(len(hypothesis.tokens), beam.options.length_penalty)
            hypotheses.append(replace(hypothesis, score=hypothesis.logp / penalty))
    return sorted((h for h in hypotheses if math.isfinite(h.logp)), key=lambda h: -h.score)


def _backtrack(beam: BeamSearch, sentence: int, self_sites: SelfSites, end: HypothesisEnd) -> Hypothesis:
    """Follow the parent pointers from the end of a hypothesis to its first token."""
    tokens, logps, weights = [end.token], [end.logp], []
    row = end.parent
    for t in range(end.step, -1, -1):
        step = beam.steps[t]
        index = step.index_of[sentence]
        if t < end.step:
            tokens.append(int(step.tokens[index, row]))
            logps.append(float(step.logp[index, row]))
            row = int(step.parents[index, row])
        if step.weights:
            weights.append({site: w[index, row] for site, w in step.weights.items()})
    attentions = join_weights(weights[::-1], beam.source_lengths[sentence], self_sites)
    return Hypothesis.from_steps(tuple(tokens[::-1]), tuple(logps[::-1]), attentions, end.score)

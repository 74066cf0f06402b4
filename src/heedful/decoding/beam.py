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
from heedful.decoding.steps import ForcedTokens, SelfSites, forced_tokens, join_weights, step_weights
from heedful.hypothesis import IMPOSSIBLE, Hypothesis, check_finite, length_penalty
from heedful.models import AutoregressiveModel, NextTokens, State, next_token_logits
from heedful.stopping import NEVER, StopCondition

MIN_COVERAGE = 1e-10  # Wu 2016, eq. 14 takes the logarithm of the coverage, which may be 0


class BeamStep(NamedTuple):
    """One step: for each unfinished sentence the `beam` best tokens, and the hypotheses that they continue.

    `index` counts the sentences that are unfinished at this step. Lists, because single numbers are read from them.
    """

    index_of: Mapping[int, int]  # sentence -> its index in this step
    tokens: list[list[int]]  # (index, beam)
    parents: list[list[int]]  # (index, beam): position of the continued hypothesis in the beam of the step before
    logp: list[list[float]]  # (index, beam): log-probability of the token alone
    weights: Mapping[str, Tensor]  # (index, beam, head, key): attention weights of the parents


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
    stop: StopCondition = NEVER,
) -> BeamSearch:
    """Run beam search and return all of its steps.

    A sentence is finished when no live hypothesis, if it ended now, would score above the worst one to be returned.
    With `options.exact` it is finished when none ever can: log P only falls, so a live hypothesis reaches at best its
    present log P under the most favorable length penalty to come.
    """
    if model.alignment_site is None:  # without attention there is no coverage
        options = options.model_copy(update={"coverage_penalty": 0.0})
    coverage_site = model.alignment_site if options.coverage_penalty else None
    if coverage_site is not None:
        hooks = _record_weights(hooks, coverage_site)
    device, size = batch.source.keep.device, options.beam
    search = BeamSearch(options, batch.source.lengths.tolist(), finished=[[] for _ in range(batch.size)])
    sentences = torch.arange(batch.size, device=device)  # the unfinished ones
    state = state.expand_to_beam(size)
    total_logp = torch.full((batch.size, size), IMPOSSIBLE, device=device)
    total_logp[:, 0] = 0.0  # the rows of a beam are equal at first, so all but one are excluded
    coverage = torch.zeros(batch.size, size, batch.source.keep.shape[1], device=device) if coverage_site else None
    last = torch.full((batch.size * size,), model.start_token, device=device)
    for t in range(options.max_length):
        stop.check(t, options.max_length)
        best = _top_tokens(model, state, last, size, hooks, forced_tokens(prefix, sentences, t))
        check_finite(best.logp[:, 0].tolist(), t)
        shape = (len(sentences), size)
        candidates = Candidates(best.tokens.view(*shape, -1), best.logp.view(*shape, -1))
        weights = {site: w.view(*shape, *w.shape[1:]) for site, w in step_weights(best.attentions).items()}
        if coverage is not None and coverage_site is not None:
            coverage = coverage + weights[coverage_site].mean(dim=2)
        total_logp, tokens, parents, logp = _choose_best(total_logp, candidates)
        index_of = {sentence: index for index, sentence in enumerate(sentences.tolist())}
        step = BeamStep(index_of, tokens.tolist(), parents.tolist(), logp.tolist(), weights)
        _add_finished(search, step, total_logp.tolist(), coverage)
        if stop.listens and 0 in step.index_of:
            stop.report(lambda: certain_tokens(search, 0))
        total_logp = total_logp.masked_fill(tokens == END, IMPOSSIBLE)
        if coverage is not None:
            coverage = coverage.gather(1, parents[..., None].expand(-1, -1, coverage.shape[-1]))
        unfinished = _unfinished(search, total_logp)
        if not unfinished:
            break
        keep = None
        if len(unfinished) < len(sentences):
            keep = torch.tensor(unfinished, device=device)
            total_logp, tokens, parents, sentences = total_logp[keep], tokens[keep], parents[keep], sentences[keep]
            coverage = None if coverage is None else coverage[keep]
        first_rows = torch.arange(len(index_of), device=device) if keep is None else keep
        rows = (first_rows[:, None] * size + parents).flatten()
        state = best.state.select(rows, keep, size)
        last = tokens.flatten()
    return search


def _record_weights(hooks: Hooks, site: str) -> Hooks:
    """Return hooks that also record the attention weights of a site."""
    if hooks.detail_at(site) is not Detail.NONE:
        return hooks
    sites = None if hooks.sites is None or hooks.detail is Detail.NONE else hooks.sites | {site}
    return replace(hooks, detail=max(hooks.detail, Detail.WEIGHTS), sites=sites)


class Candidates(NamedTuple):
    """The most likely next tokens of each hypothesis: at most `beam` of them can be chosen."""

    tokens: Tensor  # (index, beam, candidate)
    logp: Tensor


def _top_tokens(
    model: AutoregressiveModel, state: State, last: Tensor, size: int, hooks: Hooks, forced: ForcedTokens | None
) -> NextTokens:
    """Return the most likely next tokens of each row; where a token is forced, all others are impossible."""
    if forced is None:
        return model.top_next_tokens(state, last, size, hooks)
    step_output = model.step(state, last, hooks)
    logits = next_token_logits(step_output)
    is_other = torch.arange(logits.shape[-1], device=logits.device) != forced.ids[:, None]
    impossible = (forced.is_forced[:, None] & is_other).repeat_interleave(size, dim=0)
    logp, tokens = logits.log_softmax(dim=-1).masked_fill(impossible, IMPOSSIBLE).topk(min(size, logits.shape[-1]))
    return NextTokens(tokens, logp, step_output.state, step_output.attentions)


class Chosen(NamedTuple):
    """The best continuations of each sentence; all (index, beam)."""

    total_logp: Tensor
    tokens: Tensor
    parents: Tensor  # positions of the continued hypotheses
    logp: Tensor  # of the token alone


def _choose_best(total_logp: Tensor, candidates: Candidates) -> Chosen:
    """Choose the `beam` best continuations of each sentence.

    Those that end the sentence take a place in the beam, so a beam of one is greedy search under any length penalty.
    """
    size, n_candidates = candidates.tokens.shape[1:]
    best = (total_logp[..., None] + candidates.logp).flatten(1).topk(size, dim=1)
    tokens, parents = candidates.tokens.flatten(1).gather(1, best.indices), best.indices // n_candidates
    return Chosen(best.values, tokens, parents, candidates.logp.flatten(1).gather(1, best.indices))


def _add_finished(search: BeamSearch, step: BeamStep, total_logp: list[list[float]], coverage: Tensor | None) -> None:
    """Add a step to the search, and the hypotheses that end with it to the finished ones."""
    t = len(search.steps)
    search.steps.append(step)
    for (sentence, index), tokens in zip(step.index_of.items(), step.tokens, strict=True):
        if END not in tokens:
            continue
        for rank, token in enumerate(tokens):
            logp, parent = total_logp[index][rank], step.parents[index][rank]
            if token != END or not math.isfinite(logp):
                continue
            covered = None if coverage is None else coverage[index, parent, : search.source_lengths[sentence]]
            score = _score(search.options, logp, t + 1, covered)
            search.finished[sentence].append(HypothesisEnd(score, t, parent, step.logp[index][rank], END))


def _score(options: DecodingOptions, logp: float, length: int, coverage: Tensor | None) -> float:
    """Return the score of Wu 2016, eq. 14, from the coverage of each source position."""
    score = logp / length_penalty(length, options.length_penalty)
    if coverage is not None:
        score += options.coverage_penalty * float(coverage.clamp(MIN_COVERAGE, 1.0).log().sum())
    return score


def _unfinished(search: BeamSearch, total_logp: Tensor) -> list[int]:
    """Return the indices, in the last step, of sentences whose live hypotheses may still enter the result."""
    options, length = search.options, len(search.steps)
    penalty = length_penalty(length + 1, options.length_penalty)
    if options.exact:
        penalty = max(penalty, length_penalty(options.max_length, options.length_penalty))
    best_possible = (total_logp.amax(dim=1) / penalty).tolist()
    return [
        index
        for sentence, index in search.steps[-1].index_of.items()
        if best_possible[index] > _worst_to_return(search.finished[sentence], options.n_best)
    ]


def _worst_to_return(finished: list[HypothesisEnd], n_best: int) -> float:
    """Return the score of the worst finished hypothesis that would be returned now; too few of them: any is better."""
    if len(finished) < n_best:
        return IMPOSSIBLE
    return sorted((end.score for end in finished), reverse=True)[n_best - 1]


def best_hypotheses(search: BeamSearch, sentence: int, self_sites: SelfSites) -> list[Hypothesis]:
    """Return the n best finished hypotheses; live ones follow where too few have finished."""
    n_best = search.options.n_best
    ends = sorted(search.finished[sentence], key=lambda end: -end.score)[:n_best]
    hypotheses = [_backtrack(search, sentence, self_sites, end) for end in ends]
    last_step = next((t for t in reversed(range(len(search.steps))) if sentence in search.steps[t].index_of), None)
    if len(hypotheses) < n_best and last_step is not None:
        hypotheses += _live_hypotheses(search, sentence, self_sites, last_step)[: n_best - len(hypotheses)]
    return hypotheses


def certain_tokens(search: BeamSearch, sentence: int) -> list[int]:
    """Return the first tokens of a sentence that every hypothesis shares, finished or not: they are final."""
    t = len(search.steps) - 1
    step = search.steps[t]
    index = step.index_of[sentence]
    ends = [*search.finished[sentence]]
    for rank in range(search.options.beam):
        logp = step.logp[index][rank]
        if math.isfinite(logp) and step.tokens[index][rank] != END:
            ends.append(HypothesisEnd(0.0, t, step.parents[index][rank], logp, step.tokens[index][rank]))
    rows = [_tokens(search, sentence, end) for end in ends]
    count = next((i for i, column in enumerate(zip(*rows, strict=False)) if len(set(column)) > 1), min(map(len, rows)))
    return rows[0][:count]


def _tokens(search: BeamSearch, sentence: int, end: HypothesisEnd) -> list[int]:
    """Return the tokens of a hypothesis, by its parent pointers."""
    tokens, rank = [end.token], end.parent
    for step in reversed(search.steps[: end.step]):
        index = step.index_of[sentence]
        tokens.append(step.tokens[index][rank])
        rank = step.parents[index][rank]
    return tokens[::-1]


def _live_hypotheses(search: BeamSearch, sentence: int, self_sites: SelfSites, t: int) -> list[Hypothesis]:
    """Return the hypotheses of a sentence that have not ended by step `t`, best first."""
    step = search.steps[t]
    index = step.index_of[sentence]
    hypotheses = []
    for rank in range(search.options.beam):
        logp = step.logp[index][rank]
        if math.isfinite(logp):
            parent, token = step.parents[index][rank], step.tokens[index][rank]
            hypothesis = _backtrack(search, sentence, self_sites, HypothesisEnd(IMPOSSIBLE, t, parent, logp, token))
            penalty = length_penalty(len(hypothesis.tokens), search.options.length_penalty)
            hypotheses.append(replace(hypothesis, score=hypothesis.logp / penalty))
    return sorted((h for h in hypotheses if math.isfinite(h.logp)), key=lambda h: -h.score)


def _backtrack(search: BeamSearch, sentence: int, self_sites: SelfSites, end: HypothesisEnd) -> Hypothesis:
    """Follow the parent pointers from the end of a hypothesis to its first token."""
    tokens, logps, weights = [end.token], [end.logp], []
    rank = end.parent
    for t in range(end.step, -1, -1):
        step = search.steps[t]
        index = step.index_of[sentence]
        if t < end.step:
            tokens.append(step.tokens[index][rank])
            logps.append(step.logp[index][rank])
            rank = step.parents[index][rank]
        if step.weights:
            weights.append({site: w[index, rank] for site, w in step.weights.items()})
    attentions = join_weights(weights[::-1], search.source_lengths[sentence], self_sites)
    return Hypothesis.from_steps(tuple(tokens[::-1]), tuple(logps[::-1]), attentions, end.score)

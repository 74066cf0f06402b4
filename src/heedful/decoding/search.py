"""Greedy search, sampling and forced decoding with an `AutoregressiveModel`; beam search is in `beam.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Generator, Tensor

from heedful.attention import NO_HOOKS, AttentionOutput, Hooks
from heedful.config import DecodingOptions
from heedful.data.batch import Padded, TextBatch
from heedful.data.tokenizer import END
from heedful.decoding.beam import best_hypotheses, run_beam_search
from heedful.decoding.steps import (
    ForcedTokens,
    StepChoice,
    check_all_finite,
    forced_tokens,
    join_steps,
    self_attention_sites,
    step_weights,
)
from heedful.decoding.types import SearchResult
from heedful.hypothesis import Hypothesis, check_finite
from heedful.models import AutoregressiveModel, State, next_token_logits
from heedful.stopping import NEVER, StopCondition


@torch.inference_mode()
def search(
    model: AutoregressiveModel,
    batch: TextBatch,
    options: DecodingOptions,
    hooks: Hooks = NO_HOOKS,
    prefix: Padded | None = None,
    stop: StopCondition = NEVER,
) -> SearchResult:
    """Search for the outputs of a batch by the method of `options`.

    `prefix` fixes the first tokens of each output; a row may be empty. `stop` is checked before every step; if it is
    met, DecodingTimeoutError or DecodingCancelledError is raised.
    """
    stop.check(0, options.max_length)
    state, attentions = model.initial_state(batch, hooks)
    encoder_attentions = _unpad_encoder_weights(attentions, batch.source.lengths.tolist())
    if options.method == "beam":
        beam_search = run_beam_search(model, state, batch, options, hooks, prefix, stop)
        self_sites = self_attention_sites(model.sites)
        hypotheses = [best_hypotheses(beam_search, sentence, self_sites) for sentence in range(batch.size)]
        return SearchResult(hypotheses, encoder_attentions, beam_search)
    if options.method == "greedy":
        hypotheses = [[h] for h in _greedy_or_sample(model, state, batch, options, hooks, prefix, stop)]
        return SearchResult(hypotheses, encoder_attentions)
    rng = Generator(device=batch.source.keep.device).manual_seed(options.seed % 2**63)
    samples = [_greedy_or_sample(model, state, batch, options, hooks, prefix, stop, rng) for _ in range(options.n_best)]
    ranked = [sorted(hypotheses, key=lambda h: -h.score) for hypotheses in zip(*samples, strict=True)]
    return SearchResult(ranked, encoder_attentions)


@torch.inference_mode()
def force_decode(model: AutoregressiveModel, batch: TextBatch, hooks: Hooks = NO_HOOKS) -> list[Hypothesis]:
    """Return the targets of the batch as hypotheses, with their log-probabilities and attention weights."""
    assert batch.target is not None, "forced decoding needs targets"
    step_output = model(batch, hooks)
    gold, keep = batch.target.ids[:, 1:], batch.target.keep[:, 1:]
    logp = step_output.logits.log_softmax(dim=-1).gather(-1, gold[..., None]).squeeze(-1)
    source_lengths = batch.source.lengths.tolist()
    self_sites = self_attention_sites(model.sites)
    weights = {
        site: output.weights
        for site, output in step_output.attentions.items()
        if output.weights is not None and not site.startswith("enc.")
    }
    hypotheses = []
    for row in range(batch.size):
        length = int(keep[row].sum())
        attentions = {
            site: values[row, :length, :, : length if site in self_sites else source_lengths[row]]
            for site, values in weights.items()
        }
        tokens, token_logp = tuple(gold[row, :length].tolist()), tuple(logp[row, :length].tolist())
        check_all_finite(token_logp)
        hypotheses.append(Hypothesis.from_steps(tokens, token_logp, attentions))
    return hypotheses


def _unpad_encoder_weights(
    attentions: Mapping[str, AttentionOutput], lengths: Sequence[int]
) -> list[Mapping[str, Tensor]]:
    weights = {site: output.weights for site, output in attentions.items() if output.weights is not None}
    return [
        {site: values[row, :length, :, :length] for site, values in weights.items()}
        for row, length in enumerate(lengths)
    ]


def _greedy_or_sample(
    model: AutoregressiveModel,
    state: State,
    batch: TextBatch,
    options: DecodingOptions,
    hooks: Hooks,
    prefix: Padded | None,
    stop: StopCondition,
    rng: Generator | None = None,
) -> list[Hypothesis]:
    """Return one output per sentence, greedy or sampled; finished sentences are removed from the batch."""
    written: list[int] = []  # of the first sentence
    without_logits = options.method == "greedy" and prefix is None  # the model can return the best tokens faster
    if without_logits and batch.size == 1 and not stop.listens:
        generated = model.generate_greedy(state, options.max_length, hooks, stop.is_met)
        if generated is not None:
            if len(generated.tokens) < options.max_length and generated.tokens[-1:] != [END]:
                stop.check(len(generated.tokens), options.max_length)
            check_all_finite(generated.logp)
            return [Hypothesis.from_steps(tuple(generated.tokens), tuple(generated.logp), generated.attentions)]
    device = batch.source.keep.device
    last = torch.full((batch.size,), model.start_token, device=device)
    sentences = torch.arange(batch.size, device=device)  # the unfinished ones
    choices: list[StepChoice] = []
    for t in range(options.max_length):
        stop.check(t, options.max_length)
        if without_logits:
            best = model.top_next_tokens(state, last, 1, hooks)
            tokens, logp, state, attentions = best.tokens[:, 0], best.logp[:, 0], best.state, best.attentions
        else:
            step_output = model.step(state, last, hooks)
            state, attentions = step_output.state, step_output.attentions
            forced = forced_tokens(prefix, sentences, t)
            logits = next_token_logits(step_output)
            check_finite(logits.amax(dim=-1).tolist(), t)  # NaN, if any logit is
            tokens, logp = _next_tokens(logits, options, rng, forced)
        token_logp = logp.tolist()
        check_finite(token_logp, t)
        choices.append(StepChoice(sentences.tolist(), tokens.tolist(), token_logp, step_weights(attentions)))
        if stop.listens and choices[-1].sentences[0] == 0:
            written.append(choices[-1].tokens[0])
            stop.report(lambda: written)
        unfinished = (tokens != END).nonzero().squeeze(1)
        if len(unfinished) == 0:
            break
        last = tokens
        if len(unfinished) < len(sentences):
            state = state.select(unfinished, unfinished)
            last, sentences = tokens[unfinished], sentences[unfinished]
    return join_steps(choices, batch.source.lengths.tolist(), self_attention_sites(model.sites))


def _next_tokens(
    logits: Tensor, options: DecodingOptions, rng: Generator | None, forced: ForcedTokens | None
) -> tuple[Tensor, Tensor]:
    """Return the next token of each row, forced, greedy or sampled, and its log-probability."""
    logp = logits.log_softmax(dim=-1)
    tokens = logp.argmax(dim=-1) if options.method == "greedy" else _sample(logp, options, rng)
    if forced is not None:
        tokens = torch.where(forced.is_forced, forced.ids, tokens)
    return tokens, logp.gather(-1, tokens[:, None]).squeeze(1)


def _sample(logp: Tensor, options: DecodingOptions, rng: Generator | None) -> Tensor:
    """Sample a token per row: apply the temperature, then top-k, then top-p, and renormalize."""
    scores = logp / max(options.temperature, 1e-6)
    if options.top_k:
        threshold = scores.topk(min(options.top_k, scores.shape[-1])).values[:, -1:]
        scores = scores.masked_fill(scores < threshold, float("-inf"))
    if options.top_p < 1.0:
        sorted_probs = scores.softmax(-1).sort(dim=-1, descending=True)
        mass_above = sorted_probs.values.cumsum(-1) - sorted_probs.values  # probability of the more likely tokens
        mass_above[:, 0] = -1.0  # the most likely token stays, also when top_p is 0 in the precision of the scores
        is_excluded = torch.zeros_like(scores, dtype=torch.bool)
        is_excluded = is_excluded.scatter(-1, sorted_probs.indices, mass_above >= options.top_p)
        scores = scores.masked_fill(is_excluded, float("-inf"))
    return torch.multinomial(scores.softmax(-1), 1, generator=rng).squeeze(1)

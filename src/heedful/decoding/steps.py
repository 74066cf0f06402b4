"""Single steps of a search: forced tokens, attention weights, and how steps are joined to a hypothesis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from heedful.attention import AttentionOutput
from heedful.data.batch import Padded
from heedful.hypothesis import Hypothesis, check_finite
from heedful.trace.schema import Site

SelfSites = frozenset[str]  # names of the decoder's self-attention sites


class StepChoice(NamedTuple):
    """The tokens chosen in one step for the unfinished sentences."""

    sentences: list[int]
    tokens: list[int]
    logp: list[float]
    weights: Mapping[str, Tensor]  # (row, head, key)


class ForcedTokens(NamedTuple):
    """The next token of each unfinished sentence whose prefix fixes it."""

    is_forced: Tensor  # (sentence,), bool
    ids: Tensor  # (sentence,), padding where no token is forced


def forced_tokens(prefix: Padded | None, sentences: Tensor, t: int) -> ForcedTokens | None:
    """Return the tokens that a prefix fixes at step `t`; None if it fixes none."""
    if prefix is None or t >= prefix.ids.shape[1]:
        return None
    return ForcedTokens(prefix.keep[sentences, t], prefix.ids[sentences, t])


def check_all_finite(token_logp: Sequence[float]) -> None:
    """Raise DecodingError if a token of an output has no finite log-probability."""
    for step, logp in enumerate(token_logp):
        check_finite([logp], step)


def step_weights(attentions: Mapping[str, AttentionOutput]) -> dict[str, Tensor]:
    """Return the attention weights of a single step: site -> (row, head, key)."""
    return {site: output.weights[:, -1] for site, output in attentions.items() if output.weights is not None}


def join_weights(steps: Sequence[Mapping[str, Tensor]], source_length: int, self_sites: SelfSites) -> dict[str, Tensor]:
    """Stack the weights of one output's steps as site -> (step, head, key).

    Source padding is removed. At a self-attention site every step has one more key than the step before; the weights
    of later keys are 0.
    """
    joined: dict[str, Tensor] = {}
    for site in steps[0] if steps else ():
        width = len(steps) if site in self_sites else source_length
        rows = [step[site][:, :width] for step in steps]
        joined[site] = torch.stack([nn.functional.pad(row, (0, width - row.shape[-1])) for row in rows])
    return joined


def self_attention_sites(sites: Sequence[Site]) -> SelfSites:
    """Return the names of the self-attention sites."""
    return frozenset(site.id for site in sites if site.kind == "self")


def join_steps(choices: Sequence[StepChoice], source_lengths: Sequence[int], self_sites: SelfSites) -> list[Hypothesis]:
    """Return the hypothesis of each sentence from a search that keeps one per sentence."""
    tokens: list[list[int]] = [[] for _ in source_lengths]
    logps: list[list[float]] = [[] for _ in source_lengths]
    for step in choices:
        for sentence, token, logp in zip(step.sentences, step.tokens, step.logp, strict=True):
            tokens[sentence].append(token)
            logps[sentence].append(logp)
    weights = _weights_per_sentence(choices, source_lengths, [len(sentence) for sentence in tokens], self_sites)
    return [Hypothesis.from_steps(tuple(t), tuple(p), w) for t, p, w in zip(tokens, logps, weights, strict=True)]


def _weights_per_sentence(
    choices: Sequence[StepChoice], source_lengths: Sequence[int], target_lengths: Sequence[int], self_sites: SelfSites
) -> list[dict[str, Tensor]]:
    """Return what `join_weights` returns, for all sentences of a batch at once."""
    joined: list[dict[str, Tensor]] = [{} for _ in source_lengths]
    rows = [torch.tensor(step.sentences) for step in choices]
    for site, first in choices[0].weights.items():
        width = len(choices) if site in self_sites else first.shape[-1]
        allocate = first.new_zeros if site in self_sites else first.new_empty  # every source key is written
        batch = allocate(len(choices), len(source_lengths), first.shape[1], width)
        for t, step in enumerate(choices):
            weights = step.weights[site]
            batch[t, rows[t], :, : weights.shape[-1]] = weights
        for i, source_length in enumerate(source_lengths):
            keys = target_lengths[i] if site in self_sites else source_length
            joined[i][site] = batch[: target_lengths[i], i, :, :keys].contiguous()
    return joined

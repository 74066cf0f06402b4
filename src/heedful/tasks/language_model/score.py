"""Score a text with a language model: -log p of every token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from heedful.attention import NO_HOOKS, AttentionOutput, Hooks
from heedful.config import Recipe
from heedful.data.text import EncodedText, LanguageModelBatch, sentence_batch, sequential_windows
from heedful.data.tokenizer import PAD, START
from heedful.metrics.surprisal import Nats
from heedful.models import LanguageModel
from heedful.models.language_model import CoreState
from heedful.parallel import OnProgress, no_progress
from heedful.tasks.language_model.data import reading_config

BATCH_TOKENS = 6_000  # per batch at inference


class BatchScores(NamedTuple):
    """The summed loss, -log p of each target token, the state after them, and the attention of each site."""

    total: Tensor
    surprisal: Tensor
    state: CoreState
    attentions: dict[str, AttentionOutput]


def score_batch(
    model: LanguageModel,
    batch: LanguageModelBatch,
    state: CoreState = (),
    hooks: Hooks = NO_HOOKS,
    smoothing: float = 0.0,
) -> BatchScores:
    """Score the targets of a batch; the output layer is applied to real positions only."""
    inputs, context = batch.inputs, batch.context
    output = model(inputs.ids[:, context:], inputs.keep[:, context:], state, hooks)
    real = batch.targets != PAD
    total, surprisal = model.output.cross_entropy(output.features[real], batch.targets[real], smoothing)
    return BatchScores(total, surprisal, output.state, dict(output.attentions))


def context_state(model: LanguageModel, batch: LanguageModelBatch) -> CoreState:
    """Return the state after the context tokens before a window, without gradients."""
    if not batch.context:
        return ()
    with torch.no_grad():
        return model(batch.inputs.ids[:, : batch.context], batch.inputs.keep[:, : batch.context]).state


@torch.inference_mode()
def token_surprisals(
    model: LanguageModel, text: EncodedText, recipe: Recipe, on_progress: OnProgress = no_progress
) -> list[Nats]:
    """Return -log p of every token of every line, in order, by the recipe's protocol."""
    if reading_config(recipe).protocol == "contiguous":
        return _score_contiguous(model, text, reading_config(recipe).window, on_progress)
    lengths = text.lengths.target
    by_line: dict[int, Nats] = {}
    for rows in _rows_by_length(np.argsort(lengths, kind="stable").tolist(), lengths.tolist()):
        batch = sentence_batch([text[row].target for row in rows], START)
        surprisal = score_batch(model, batch).surprisal.double().numpy()
        ends = np.cumsum(lengths[rows])
        by_line.update(zip(rows, np.split(surprisal, ends[:-1]), strict=True))
        on_progress(len(rows))
    return [by_line[row] for row in range(len(text))]


def _rows_by_length(order: Sequence[int], lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield rows of similar length, about `BATCH_TOKENS` at a time, the longest first."""
    remaining = list(order)
    while remaining:
        count = max(1, BATCH_TOKENS // lengths[remaining[-1]])
        yield remaining[-count:]
        del remaining[-count:]


def _score_contiguous(model: LanguageModel, text: EncodedText, window: int, on_progress: OnProgress) -> list[Nats]:
    """Score one long text window by window; the state is carried to its end."""
    state: CoreState = ()
    surprisals = []
    for batch in sequential_windows(text.flat, window):
        scores = score_batch(model, batch, state)
        state = scores.state
        surprisals.append(scores.surprisal.double().numpy())
    on_progress(len(text))
    return np.split(np.concatenate(surprisals), np.cumsum(text.lengths.target)[:-1])

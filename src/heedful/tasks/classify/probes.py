"""Probes of classifiers: each text is one decision, whose pooling weights can be replaced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.attention import AttentionOutput, Detail, Hooks, Override
from heedful.data.batch import Padded, pad
from heedful.data.labels import LabelBatch
from heedful.layers.pooling import POOL, PoolingQuery
from heedful.models import Classifier
from heedful.tasks.probes import (
    differentiable_output,
    frozen_weights,
    gradient_times_input,
    in_chunks,
    normalize_saliency,
)

PROBE_ROWS = 50  # texts per batch of probes
PREDICT_ROWS = 200  # texts per batch without gradients


@dataclass(frozen=True)
class LabelProbe:
    """The labels of several texts."""

    model: Classifier
    pooling_query: PoolingQuery
    weights: Tensor
    valid: Tensor
    readable: Tensor
    probabilities: Tensor
    token_weights: Tensor
    items: list[int]
    step: int = 0

    def predict(self, weights: Tensor) -> Tensor:
        """Return the distributions of the labels under other weights, with gradients."""
        return in_chunks(weights, self._predict_chunk)

    def _predict_chunk(self, weights: Tensor) -> Tensor:
        def replace(_: str, attention: AttentionOutput, __: Tensor) -> Override:
            assert attention.weights is not None
            return Override(weights.to(attention.weights.dtype))

        query = self.pooling_query.repeat(weights.shape[1])
        return self.model.reattend(query, Hooks(Detail.NONE, edit=replace)).softmax(dim=-1)


def _batches(sources: Sequence[Sequence[int]], texts: Sequence[int], size: int) -> Iterator[tuple[list[int], Padded]]:
    """Yield texts of similar length together."""
    order = sorted(texts, key=lambda i: len(sources[i]))
    for first in range(0, len(order), size):
        rows = order[first : first + size]
        yield rows, pad([sources[row] for row in rows])


def label_probes(model: Classifier, sources: Sequence[Sequence[int]], texts: Sequence[int]) -> Iterator[LabelProbe]:
    """Yield probes of the given texts, one per batch."""
    for rows, source in _batches(sources, texts, PROBE_ROWS):
        with torch.no_grad():
            output = model(LabelBatch(source), Hooks(Detail.WEIGHTS, model.pooling_sites))
        weights, query = output.attentions[POOL].weights, output.pooling_query
        assert weights is not None
        assert query is not None
        assert output.weights is not None
        readable = query.memory.keep
        is_end = torch.arange(readable.shape[1]) == (source.lengths - 1)[:, None]
        valid = model.source_keep(LabelBatch(source)) & ~is_end
        probabilities = output.logits.softmax(dim=-1)
        yield LabelProbe(model, query, weights[:, 0], valid, readable, probabilities, output.weights, rows)


@torch.no_grad()
def predict_labels(model: Classifier, sources: Sequence[Sequence[int]]) -> Tensor:
    """Return the distribution over labels of each text: (row, label)."""
    probabilities = torch.zeros(len(sources), model.output.out_features)
    for rows, source in _batches(sources, range(len(sources)), PREDICT_ROWS):
        probabilities[rows] = model(LabelBatch(source)).logits.softmax(dim=-1)
    return probabilities


def text_saliency(model: Classifier, sources: Sequence[Sequence[int]], texts: Sequence[int]) -> list[Tensor]:
    """Return `|sum_d x_id dP(y)/dx_id|` of every position i of each text, normalized to sum 1.

    y is the most likely label. Attention weights are held constant.
    """
    hooks = frozen_weights(model.pooling_sites)
    saliency: dict[int, Tensor] = {}
    for rows, source in _batches(sources, sorted(set(texts)), PROBE_ROWS):
        with torch.enable_grad(), differentiable_output(model.embedding) as leaves:
            most_likely = model(LabelBatch(source), hooks).logits.softmax(dim=-1).max(dim=-1).values
            (gradient,) = torch.autograd.grad(most_likely.sum(), leaves[0])
        importance = gradient_times_input(gradient, leaves[0])
        for batch_row, row in enumerate(rows):
            saliency[row] = normalize_saliency(importance[batch_row, : len(sources[row])])
    return [saliency[row] for row in texts]

"""Probes of classifiers: each text is one decision; its weights can be changed, what was read stays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from heedful.attention import Detail, Look, Override, Watch
from heedful.data.batch import Padded, pad
from heedful.data.labels import LabelBatch
from heedful.layers.pooling import POOL, Asked
from heedful.models import Classifier
from heedful.models.classifier import Judged
from heedful.studies.probe import in_parts

TEXTS = 50  # read at once


@dataclass(frozen=True)
class LabelProbe:
    """The labels of some texts."""

    model: Classifier
    asked: Asked
    weights: Tensor
    valid: Tensor
    open: Tensor
    p: Tensor
    shares: Tensor
    sentences: list[int]  # which of the corpus
    step: int = 0

    def outcome(self, weights: Tensor) -> Tensor:
        """The distributions of labels under other weights, gradients led back to them."""
        return in_parts(weights, self._some)

    def _some(self, weights: Tensor) -> Tensor:
        def change(_: str, look: Look, __: Tensor) -> Override:
            assert look.weights is not None
            return Override(weights.to(look.weights.dtype))

        watch = Watch(Detail.NONE, edit=change)
        return self.model.again(self.asked.times(weights.shape[1]), watch).softmax(dim=-1)


def _batches(
    sources: Sequence[Sequence[int]], chosen: Sequence[int], size: int = TEXTS
) -> Iterator[tuple[list[int], Padded]]:
    """Those of like length together."""
    order = sorted(chosen, key=lambda i: len(sources[i]))
    for first in range(0, len(order), size):
        rows = order[first : first + size]
        yield rows, pad([sources[row] for row in rows])


def label_probes(
    model: Classifier, sources: Sequence[Sequence[int]], chosen: Sequence[int]
) -> Iterator[LabelProbe]:
    """The chosen texts, those of one batch together."""
    for rows, source in _batches(sources, chosen):
        with torch.no_grad():
            said = model.judge(LabelBatch(source), Watch(Detail.WEIGHTS, model.weighing))
        weights = said.looks[POOL].weights
        assert weights is not None
        assert said.asked is not None
        assert said.weights is not None
        open_, real = said.asked.memory.keep, model.readable(LabelBatch(source))
        special = torch.arange(open_.shape[1]) == (source.lengths - 1)[:, None]
        p = said.logits.softmax(dim=-1)
        yield LabelProbe(model, said.asked, weights[:, 0], real & ~special, open_, p, said.weights, rows)


@torch.no_grad()
def label_scores(model: Classifier, sources: Sequence[Sequence[int]]) -> Tensor:
    """The distribution over labels of each text: (row, label)."""
    found = torch.zeros(len(sources), model.output.out_features)
    for rows, source in _batches(sources, range(len(sources)), 200):
        found[rows] = model.judge(LabelBatch(source)).logits.softmax(dim=-1)
    return found


def label_saliency(
    model: Classifier, sources: Sequence[Sequence[int]], chosen: Sequence[int]
) -> list[Tensor]:
    """For each chosen text `|sum_d x_id dP(y)/dx_id|` of every position, summing to 1.

    y is the likeliest label. The weights of the look (and of those inside sentences) are held fast.
    """

    def held(site: str, look: Look, _: Tensor) -> Override | None:
        assert look.weights is not None
        return Override(look.weights.detach()) if site in model.weighing else None

    found: dict[int, Tensor] = {}
    for rows, source in _batches(sources, sorted(set(chosen))):
        with torch.enable_grad():
            said, vectors = _from_vectors(model, LabelBatch(source), Watch(Detail.NONE, edit=held))
            likeliest = said.logits.softmax(dim=-1).max(dim=-1).values
            (slope,) = torch.autograd.grad(likeliest.sum(), vectors)
        importance = (slope * vectors.detach()).sum(dim=-1).abs()
        for place, row in enumerate(rows):
            mine = importance[place, : len(sources[row])]
            found[row] = mine / mine.sum().clamp_min(1e-30)
    return [found[row] for row in chosen]


def _from_vectors(model: Classifier, batch: LabelBatch, watch: Watch) -> tuple[Judged, Tensor]:
    """The batch judged, and its word vectors, to which gradients lead."""
    vectors: list[Tensor] = []

    def hear(_: nn.Module, __: object, out: Tensor) -> Tensor:
        vectors.append(out.detach().requires_grad_())
        return vectors[0]

    handle = model.embedding.register_forward_hook(hear)
    try:
        return model.judge(batch, watch), vectors[0]
    finally:
        handle.remove()

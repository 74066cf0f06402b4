"""Guided attention: links as targets of the attention weights (Chen 2016; Liu 2016; Bao 2018; Garg 2019)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from heedful.alignment import align_pairs
from heedful.attention import AttentionOutput
from heedful.config import Recipe, TrainingConfig
from heedful.config.guided import ALIGN, GOLD, GuidedConfig
from heedful.data.batch import BucketBatches, Guide
from heedful.data.guides import (
    ExampleWords,
    LinkRows,
    attach_links,
    make_guide,
    read_link_column,
    read_link_lines,
)
from heedful.data.pairs import PairFiles, TextPair
from heedful.data.paths import locate
from heedful.errors import DataError, TrainingError, nearest
from heedful.optional import not_none
from heedful.tasks.splits import Split
from heedful.trace.schema import Site, SiteKind
from heedful.training.types import LogLine

EPSILON = 1e-6  # added to a weight before its logarithm, so that a weight of 0 has a finite loss


class AttendingModel(Protocol):
    """What is known of a model whose attention is guided."""

    @property
    def sites(self) -> tuple[Site, ...]: ...
    @property
    def alignment_site(self) -> str | None: ...


def open_guided_pairs(recipe: Recipe, base: Path, train: Split, log: LogLine) -> list[TextPair]:
    """Return the training pairs with the links that the recipe names; they stay in memory."""
    guided = not_none(recipe.training.guided)
    if guided.links == GOLD:
        pairs = list(train)
    elif guided.links == ALIGN:
        log("training.guided: aligning the training pairs")
        pairs = list(train)
        texts = ((pair.source, pair.target) for pair in pairs)
        aligned = align_pairs(texts, log=log)
        pairs = [pair._replace(links=tuple(sorted(a.links))) for pair, a in zip(pairs, aligned, strict=True)]
    else:
        assert isinstance(train, PairFiles)
        if guided.column:
            lines = read_link_column(train.paths[0], guided.column, recipe.data)
            name = f'{train.paths[0]}, column "{guided.column}"'
        else:
            path = locate(guided.links, base)
            lines, name = read_link_lines(path), str(path)
        pairs = list(attach_links(train.numbered_pairs(), lines, name, recipe.task.kind == "classify"))
    n_linked = sum(bool(pair.links) for pair in pairs)
    if not n_linked:
        raise DataError("training.guided: none of the training examples has links")
    log(f"training.guided: {n_linked:,} of {len(pairs):,} training examples have links")
    return pairs


class GuideMaker:
    """Makes the guides of batches, with the weight of the loss at their step."""

    def __init__(self, config: GuidedConfig, links: LinkRows, buckets: BucketBatches, training: TrainingConfig) -> None:
        self.config, self.links = config, links
        self.batches_per_step = training.accumulate_grad_batches * int(os.environ.get("WORLD_SIZE", "1"))
        self.steps_per_epoch = -(-len(buckets.epoch_plan(1)) // self.batches_per_step)

    def weight(self, epoch: int, number: int) -> float:
        """Return the weight of the loss for a batch; it depends on nothing else, so a resumed run has the same."""
        if not self.config.decay_steps:
            return self.config.weight
        step = (epoch - 1) * self.steps_per_epoch + number // self.batches_per_step
        return self.config.weight * max(0.0, 1.0 - step / self.config.decay_steps)

    def make(self, rows: Sequence[int], words: Iterator[ExampleWords], epoch: int, number: int) -> Guide | None:
        """Return the guide of a batch; None if its weight is 0."""
        weight = self.weight(epoch, number)
        return make_guide([self.links[row] for row in rows], list(words), weight) if weight else None


def guided_sites(model: AttendingModel, config: GuidedConfig, kind: SiteKind) -> frozenset[str]:
    """Return the sites that are guided; raise a TrainingError for those that cannot be."""
    known = {site.id: site for site in model.sites if site.kind == kind}
    names = config.sites or ((model.alignment_site,) if model.alignment_site in known else ())
    if not names:
        raise TrainingError("training.guided: this model has no attention that could be guided")
    for name in names:
        if name not in known:
            other = next((site for site in model.sites if site.id == name), None)
            reason = "no such site" if other is None else f"{other.kind}-attention has no links to guide it"
            raise TrainingError(f'training.guided: sites = "{name}": {reason}; {nearest(name, known)}')
        heads = known[name].heads
        if any(head >= heads for head in config.heads):
            raise TrainingError(f"training.guided: heads = {list(config.heads)}: {name} has {heads}, from 0")
    return frozenset(names)


def guided_loss(
    attentions: Mapping[str, AttentionOutput], sites: frozenset[str], guide: Guide, config: GuidedConfig
) -> Tensor:
    """Return the weighted loss between the weights of the guided sites and the guide.

    The weights are the mean over the guided heads; hard attention uses its distribution instead of its sample. The loss
    of a target token is the cross-entropy `-sum_i g_i log a_i` or the squared distance `sum_i (g_i - a_i)^2`; tokens
    without links have none. It is summed over tokens, mean over sites.
    """
    heads = list(config.heads)
    losses = []
    for site in sorted(sites):
        output = attentions[site]
        weights = not_none(output.extras.get("alpha", output.weights))
        if torch.is_grad_enabled() and not weights.requires_grad:
            raise TrainingError(f'training.guided: the weights of "{site}" have no gradient, so they cannot be guided')
        weights = (weights[:, :, heads] if heads else weights).mean(dim=2)
        target = guide.target.to(weights.dtype)
        if config.loss == "squared":
            linked = target.sum(dim=-1) > 0
            losses.append(((weights - target).square().sum(dim=-1) * linked).sum())
        else:
            losses.append(-(target * (weights + EPSILON).log()).sum())
    return guide.weight * torch.stack(losses).mean()

"""Batches: padded ids that travel with their masks, gathered by length under a budget of positions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.data.tokenizer import PAD, START


class Padded(NamedTuple):
    """Ids, padded on the right, and where they are real."""

    ids: Tensor  # (batch, time), int64
    keep: Tensor  # (batch, time), bool

    @property
    def lengths(self) -> Tensor:
        return self.keep.sum(dim=1)

    def to(self, device: torch.device) -> Padded:
        return Padded(self.ids.to(device), self.keep.to(device))


class TextBatch(NamedTuple):
    """Sentences to read and, in training, what to write: `<s> y_1 ... y_N </s>`."""

    source: Padded
    target: Padded | None = None

    @property
    def size(self) -> int:
        return len(self.source.ids)

    def to(self, device: torch.device) -> TextBatch:
        return TextBatch(self.source.to(device), None if self.target is None else self.target.to(device))


class Encoded(NamedTuple):
    """One example in numbers; both sides end with the end token."""

    source: list[int]
    target: list[int]


def pad(rows: Sequence[Sequence[int]]) -> Padded:
    """
    >>> pad([[5, 6], [7]]).ids
    tensor([[5, 6],
            [7, 0]])
    """
    width = max(map(len, rows), default=0)
    ids = torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows], dtype=torch.long)
    lengths = torch.tensor([len(row) for row in rows])
    return Padded(ids.view(len(rows), width), torch.arange(width) < lengths[:, None])


def collate(examples: Sequence[Encoded]) -> TextBatch:
    return TextBatch(pad([e.source for e in examples]), pad([[START, *e.target] for e in examples]))


class Buckets:
    """Batches of sentences of like length, at most `budget` padded positions on either side.

    The order follows from the seed and the epoch alone, so a run can be taken up at any batch again.
    """

    def __init__(self, examples: Sequence[Encoded], budget: int, seed: int) -> None:
        self.examples = examples
        self.budget = budget
        self.seed = seed

    def plan(self, epoch: int) -> list[list[int]]:
        """The rows of each batch of an epoch."""
        rng = random.Random(f"{self.seed} {epoch}")
        order = list(range(len(self.examples)))
        rng.shuffle(order)  # so that sentences of equal length meet others each epoch
        order.sort(key=lambda row: (len(self.examples[row].target), len(self.examples[row].source)))
        batches: list[list[int]] = [[]]
        wide = 0
        for row in order:
            size = max(len(self.examples[row].source), len(self.examples[row].target))
            wide = max(wide, size)
            if batches[-1] and wide * (len(batches[-1]) + 1) > self.budget:
                batches.append([])
                wide = size
            batches[-1].append(row)
        rng.shuffle(batches)
        return batches

    def epoch(self, epoch: int) -> Iterator[TextBatch]:
        for rows in self.plan(epoch):
            yield collate([self.examples[row] for row in rows])

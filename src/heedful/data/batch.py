"""Batches: padded ids that travel with their masks, gathered by length under a budget of positions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heedful.data.tokenizer import PAD, START

Ints = npt.NDArray[np.int32]


class Padded(NamedTuple):
    """Ids, padded on the right, and where they are real."""

    ids: Tensor  # (batch, time), int64
    keep: Tensor  # (batch, time), bool

    @property
    def lengths(self) -> Tensor:
        return self.keep.sum(dim=1)

    def rows(self, start: int, step: int) -> Padded:
        """Every `step`-th row from `start` on, no wider than it must be."""
        keep = self.keep[start::step]
        width = int(keep.sum(dim=1).max()) if len(keep) else 0
        return Padded(self.ids[start::step, :width].contiguous(), keep[:, :width].contiguous())

    def double(self) -> Padded:
        """Ids have no precision."""
        return self

    def to(self, device: torch.device) -> Padded:
        return Padded(self.ids.to(device), self.keep.to(device))


class Regions(NamedTuple):
    """Pictures as an encoder reads them: a vector for each region of a grid."""

    vectors: Tensor  # (batch, region, width)
    keep: Tensor  # (batch, region), bool

    @property
    def lengths(self) -> Tensor:
        return self.keep.sum(dim=1)

    def rows(self, start: int, step: int) -> Regions:
        return Regions(self.vectors[start::step].contiguous(), self.keep[start::step].contiguous())

    def double(self) -> Regions:
        return Regions(self.vectors.double(), self.keep)

    def to(self, device: torch.device) -> Regions:
        return Regions(self.vectors.to(device), self.keep.to(device))


class TextBatch(NamedTuple):
    """What is read, sentences or pictures, and in training what to write: `<s> y_1 ... y_N </s>`."""

    source: Padded | Regions
    target: Padded | None = None

    @property
    def size(self) -> int:
        return len(self.source.keep)

    @property
    def words(self) -> Padded:
        """The source, where it is text."""
        assert isinstance(self.source, Padded)
        return self.source

    def rows(self, start: int, step: int) -> TextBatch:
        """Every `step`-th sentence from `start` on."""
        target = None if self.target is None else self.target.rows(start, step)
        return TextBatch(self.source.rows(start, step), target)

    def to(self, device: torch.device) -> TextBatch:
        return TextBatch(self.source.to(device), None if self.target is None else self.target.to(device))


class Encoded(NamedTuple):
    """One example in numbers; both sides end with the end token."""

    source: list[int]
    target: list[int]


class Lengths(NamedTuple):
    """How long both sides of every example are, end tokens included."""

    source: Ints
    target: Ints


class Examples(Protocol):
    """What batches are made of: a corpus, or a list of `Encoded`."""

    def __len__(self) -> int: ...
    def __getitem__(self, row: int, /) -> Encoded: ...


class PaddingShare(NamedTuple):
    """The share of an epoch's positions that are padding; in the target, of the tokens to be written."""

    source: float
    target: float
    both: float


class Plan(NamedTuple):
    """An epoch: batch i holds `rows[bounds[i]:bounds[i + 1]]`, and the batches come as in `order`."""

    rows: Ints
    bounds: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.order)

    def batch(self, number: int) -> list[int]:
        at = self.order[number]
        batch: list[int] = self.rows[self.bounds[at] : self.bounds[at + 1]].tolist()
        return batch


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

    The order follows from the seed and the epoch alone, so a run can be taken up at any batch again. Of
    several processes, each gets every `world`-th batch, all of them equally many: where the last round is
    not full, the epoch's first batches come a second time.
    """

    def __init__(
        self,
        examples: Examples,
        budget: int,
        seed: int,
        *,
        sentences: int | None = None,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.examples = examples
        self.budget = budget
        self.seed = seed
        self.sentences = sentences if sentences is not None else budget
        self.rank = rank
        self.world = world
        self._lengths = _lengths(examples)
        self._last: tuple[int, Plan] | None = None  # a plan is asked for several times in its epoch

    def arrange(self, epoch: int) -> Plan:
        """The epoch's batches, those of all processes."""
        if self._last is None or self._last[0] != epoch:
            self._last = (epoch, self._arrange(epoch))
        return self._last[1]

    def plan(self, epoch: int) -> list[list[int]]:
        """The rows of each batch that this process gets in an epoch."""
        plan = self.arrange(epoch)
        return [plan.batch(number) for number in self._own(plan)]

    def count(self, epoch: int) -> int:
        """How many batches this process, like every other, gets in an epoch."""
        return -(-len(self.arrange(epoch)) // self.world)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[TextBatch]:
        """This process's batches, from number `start` on: `(epoch, number)` is all a position needs."""
        plan = self.arrange(epoch)
        for number in self._own(plan)[start:]:
            yield collate([self.examples[row] for row in plan.batch(number)])

    def padding_share(self, epoch: int) -> PaddingShare:
        plan = self.arrange(epoch)
        sizes = np.diff(plan.bounds)
        real, padded = [], []
        for lengths in self._lengths:
            widths = np.maximum.reduceat(lengths[plan.rows], plan.bounds[:-1]) if len(sizes) else sizes
            real.append(int(lengths.sum(dtype=np.int64)))
            padded.append(int((widths * sizes).sum()))
        shares = [
            (p - r) / max(p, 1) for r, p in zip([*real, sum(real)], [*padded, sum(padded)], strict=True)
        ]
        return PaddingShare(*shares)

    def _own(self, plan: Plan) -> list[int]:
        rounds = -(-len(plan) // self.world)
        return [(step * self.world + self.rank) % len(plan) for step in range(rounds)]

    def _arrange(self, epoch: int) -> Plan:
        digest = hashlib.sha256(f"{self.seed} {epoch}".encode()).digest()
        rng = np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))
        rows = rng.permutation(np.arange(len(self.examples), dtype=np.int32))  # equal lengths meet others
        rows = rows[_by_length(self._lengths.source[rows], self._lengths.target[rows])]
        sizes = np.maximum(self._lengths.source[rows], self._lengths.target[rows])
        bounds = self._cut(sizes, first=rng.random())
        return Plan(rows, bounds, rng.permutation(len(bounds) - 1))

    def _cut(self, sizes: Ints, first: float) -> npt.NDArray[np.int64]:
        """Where batches end: each takes what the budget allows, the first a random share of that.

        So neighbours in length are parted at other places each epoch.
        """
        bounds = [0]
        while (at := bounds[-1]) < len(sizes):
            most = max(1, min(self.sentences, self.budget // max(1, int(sizes[at]))))
            widest = np.maximum.accumulate(sizes[at : at + most])
            fitting = int((widest * np.arange(1, len(widest) + 1) <= self.budget).sum())
            if at == 0:
                fitting = int(fitting * first)
            bounds.append(at + max(1, fitting))
        return np.array(bounds, dtype=np.int64)


def _lengths(examples: Examples) -> Lengths:
    known = getattr(examples, "lengths", None)
    if isinstance(known, Lengths):
        return known
    both = [examples[row] for row in range(len(examples))]
    return Lengths(
        np.array([len(e.source) for e in both], dtype=np.int32),
        np.array([len(e.target) for e in both], dtype=np.int32),
    )


def _by_length(source: Ints, target: Ints) -> npt.NDArray[np.int64]:
    """The order of like lengths: by the longer side, then by how much longer it is, up and down in turn.

    In turn, so that neighbours across two lengths are alike on both sides. On Multi30k this pads less than
    target before source does, and fills the budget better (see the figures in the tests).
    """
    longer = np.maximum(source, target)
    width = int(longer.max(initial=0)) + 1
    key: npt.NDArray[Any] = longer.astype(np.int32 if 2 * width * width < 2**31 else np.int64)
    key *= 2 * width
    key += np.where(longer % 2 == 0, source - target, target - source)
    return np.argsort(key, kind="stable")

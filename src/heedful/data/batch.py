"""Batches: padded ids with their masks, bucketed by length under a budget of positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heedful.data.rng import seeded_rng
from heedful.data.tokenizer import PAD, START

Ints = npt.NDArray[np.int32]


class Padded(NamedTuple):
    """Ids padded on the right, and the mask of the real ones."""

    ids: Tensor  # (batch, time), int64
    keep: Tensor  # (batch, time), bool

    @property
    def lengths(self) -> Tensor:
        return self.keep.sum(dim=1)

    def rows(self, start: int, step: int) -> Padded:
        """Return every `step`-th row from `start` on, without columns that only pad."""
        keep = self.keep[start::step]
        width = int(keep.sum(dim=1).max()) if len(keep) else 0
        return Padded(self.ids[start::step, :width].contiguous(), keep[:, :width].contiguous())

    def double(self) -> Padded:
        """Return itself: ids have no floating-point precision."""
        return self

    def to(self, device: torch.device) -> Padded:
        return Padded(self.ids.to(device), self.keep.to(device))


class Regions(NamedTuple):
    """Images as encoders take them: one vector for each region of a grid."""

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
    """Sources, sentences or images, and in training the targets: `<s> y_1 ... y_N </s>`."""

    source: Padded | Regions
    target: Padded | None = None

    @property
    def size(self) -> int:
        return len(self.source.keep)

    def rows(self, start: int, step: int) -> TextBatch:
        """Return every `step`-th example from `start` on."""
        target = None if self.target is None else self.target.rows(start, step)
        return TextBatch(self.source.rows(start, step), target)

    def to(self, device: torch.device) -> TextBatch:
        return TextBatch(self.source.to(device), None if self.target is None else self.target.to(device))


class EncodedPair(NamedTuple):
    """One example as ids; both sides end with the end token."""

    source: list[int]
    target: list[int]


class Lengths(NamedTuple):
    """The lengths of both sides of every example, end tokens included."""

    source: Ints
    target: Ints


class Examples(Protocol):
    """Encoded examples by row number: a corpus, or a list of `EncodedPair`."""

    def __len__(self) -> int: ...
    def __getitem__(self, row: int, /) -> EncodedPair: ...


class PaddingShare(NamedTuple):
    """The fraction of an epoch's positions that are padding, of each side and of both."""

    source: float
    target: float
    both: float


class EpochPlan(NamedTuple):
    """The batches of an epoch: number n has the rows `rows[bounds[i]:bounds[i + 1]]` with i = `order[n]`."""

    rows: Ints
    bounds: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.order)

    def batch(self, number: int) -> list[int]:
        """Return the rows of one batch."""
        at = self.order[number]
        batch: list[int] = self.rows[self.bounds[at] : self.bounds[at + 1]].tolist()
        return batch


def pad(rows: Sequence[Sequence[int]]) -> Padded:
    """Pad rows of ids to the length of the longest.

    >>> pad([[5, 6], [7]]).ids
    tensor([[5, 6],
            [7, 0]])
    """
    width = max(map(len, rows), default=0)
    ids = torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows], dtype=torch.long)
    lengths = torch.tensor([len(row) for row in rows])
    return Padded(ids.view(len(rows), width), torch.arange(width) < lengths[:, None])


def collate(examples: Sequence[EncodedPair]) -> TextBatch:
    """Pad examples into a batch, with the start token before each target."""
    return TextBatch(pad([e.source for e in examples]), pad([[START, *e.target] for e in examples]))


class BucketBatches:
    """Batches of examples of similar length, with at most `budget` padded positions on either side.

    The order follows from the seed and the epoch alone, so training can resume at any batch. Of `world_size`
    processes, each gets every `world_size`-th batch and all get equally many: where the last round is not full, the
    first batches of the epoch are repeated.
    """

    def __init__(
        self,
        examples: Examples,
        budget: int,
        seed: int,
        *,
        max_rows: int | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self.examples = examples
        self.budget = budget
        self.seed = seed
        self.max_rows = max_rows if max_rows is not None else budget
        self.rank = rank
        self.world_size = world_size
        self._lengths = _lengths(examples)
        self._last: tuple[int, EpochPlan] | None = None  # every epoch needs its plan several times

    def epoch_plan(self, epoch: int) -> EpochPlan:
        """Return the batches of an epoch, those of all processes."""
        if self._last is None or self._last[0] != epoch:
            self._last = (epoch, self._plan_epoch(epoch))
        return self._last[1]

    def batch_rows(self, epoch: int) -> list[list[int]]:
        """Return the rows of each batch that this process gets in an epoch."""
        plan = self.epoch_plan(epoch)
        return [plan.batch(number) for number in self._own(plan)]

    def n_batches(self, epoch: int) -> int:
        """Return the number of batches that each process gets in an epoch."""
        return -(-len(self.epoch_plan(epoch)) // self.world_size)

    def batches(self, epoch: int, start: int = 0) -> Iterator[TextBatch]:
        """Yield the batches of this process from number `start` on."""
        plan = self.epoch_plan(epoch)
        for number in self._own(plan)[start:]:
            yield collate([self.examples[row] for row in plan.batch(number)])

    def padding_share(self, epoch: int) -> PaddingShare:
        """Return how much of an epoch is padding."""
        plan = self.epoch_plan(epoch)
        sizes = np.diff(plan.bounds)
        real, padded = [], []
        for lengths in self._lengths:
            widths = np.maximum.reduceat(lengths[plan.rows], plan.bounds[:-1]) if len(sizes) else sizes
            real.append(int(lengths.sum(dtype=np.int64)))
            padded.append(int((widths * sizes).sum()))
        shares = [(p - r) / max(p, 1) for r, p in zip([*real, sum(real)], [*padded, sum(padded)], strict=True)]
        return PaddingShare(*shares)

    def _own(self, plan: EpochPlan) -> list[int]:
        rounds = -(-len(plan) // self.world_size)
        return [(step * self.world_size + self.rank) % len(plan) for step in range(rounds)]

    def _plan_epoch(self, epoch: int) -> EpochPlan:
        rng = seeded_rng(self.seed, epoch)
        rows = rng.permutation(np.arange(len(self.examples), dtype=np.int32))  # so that equal lengths are shuffled
        rows = rows[_by_length(self._lengths.source[rows], self._lengths.target[rows])]
        sizes = np.maximum(self._lengths.source[rows], self._lengths.target[rows])
        bounds = self._cut(sizes, first=rng.random())
        return EpochPlan(rows, bounds, rng.permutation(len(bounds) - 1))

    def _cut(self, sizes: Ints, first: float) -> npt.NDArray[np.int64]:
        """Return where batches end: each takes what the budget allows, the first a random share of that.

        The random share puts the boundaries between neighbors in length elsewhere in each epoch.
        """
        bounds = [0]
        while (at := bounds[-1]) < len(sizes):
            limit = max(1, min(self.max_rows, self.budget // max(1, int(sizes[at]))))
            widest = np.maximum.accumulate(sizes[at : at + limit])
            fitting = int((widest * np.arange(1, len(widest) + 1) <= self.budget).sum())
            if at == 0:
                fitting = int(fitting * first)
            bounds.append(at + max(1, fitting))
        return np.array(bounds, dtype=np.int64)


def _lengths(examples: Examples) -> Lengths:
    lengths = getattr(examples, "lengths", None)
    if isinstance(lengths, Lengths):
        return lengths
    pairs = [examples[row] for row in range(len(examples))]
    return Lengths(
        np.array([len(e.source) for e in pairs], dtype=np.int32),
        np.array([len(e.target) for e in pairs], dtype=np.int32),
    )


def _by_length(source: Ints, target: Ints) -> npt.NDArray[np.int64]:
    """Return the order by the longer side, then by the difference of both, alternately ascending and descending.

    Alternately, so that neighbors across two lengths are similar on both sides. On Multi30k this pads less than
    sorting by target and then source, and fills the budget better (see the numbers in the tests).
    """
    longer = np.maximum(source, target)
    width = int(longer.max(initial=0)) + 1
    key: npt.NDArray[Any] = longer.astype(np.int32 if 2 * width * width < 2**31 else np.int64)
    key *= 2 * width
    key += np.where(longer % 2 == 0, source - target, target - source)
    return np.argsort(key, kind="stable")

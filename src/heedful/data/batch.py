"""Batches: padded ids with their masks, bucketed by length, with a maximum number of tokens per batch."""

from __future__ import annotations

import math
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
    """Ids padded on the right, and the mask that is True where an id is not padding."""

    ids: Tensor  # (batch, time), int64
    keep: Tensor  # (batch, time), bool

    @property
    def lengths(self) -> Tensor:
        return self.keep.sum(dim=1)

    def rows(self, start: int, step: int) -> Padded:
        """Return every `step`-th row from `start` on, without columns that contain only padding."""
        keep = self.keep[start::step]
        width = int(keep.sum(dim=1).max()) if len(keep) else 0
        return Padded(self.ids[start::step, :width].contiguous(), keep[:, :width].contiguous())

    def double(self) -> Padded:
        """Return this batch unchanged; `Regions.double` converts its vectors."""
        return self

    def to(self, device: torch.device) -> Padded:
        return Padded(self.ids.to(device), self.keep.to(device))


class Regions(NamedTuple):
    """A batch of images as encoder inputs: one feature vector per region of the image grid."""

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


class Guide(NamedTuple):
    """The weights that attention is to have, and the weight of the loss.

    Each row of `target` sums to 1, or is all zeros where nothing is known.
    """

    target: Tensor  # (batch, step, key)
    weight: float

    def rows(self, start: int, step: int, steps: int, width: int) -> Guide:
        """Return every `step`-th example from `start` on, with so many steps and keys."""
        return self._replace(target=self.target[start::step, :steps, :width].contiguous())

    def to(self, device: torch.device) -> Guide:
        return self._replace(target=self.target.to(device))


class TextBatch(NamedTuple):
    """A batch of sources, which are sentences or images, and in training of targets: `<s> y_1 ... y_N </s>`."""

    source: Padded | Regions
    target: Padded | None = None
    guide: Guide | None = None  # of cross-attention, one step per target token but the first

    @property
    def size(self) -> int:
        return len(self.source.keep)

    def rows(self, start: int, step: int) -> TextBatch:
        """Return every `step`-th example from `start` on."""
        source = self.source.rows(start, step)
        target = None if self.target is None else self.target.rows(start, step)
        if self.guide is None or target is None:
            return TextBatch(source, target)
        sizes = target.keep.shape[1] - 1, source.keep.shape[1]
        return TextBatch(source, target, self.guide.rows(start, step, *sizes))

    def to(self, device: torch.device) -> TextBatch:
        target = None if self.target is None else self.target.to(device)
        return TextBatch(self.source.to(device), target, None if self.guide is None else self.guide.to(device))


class EncodedPair(NamedTuple):
    """The ids of a source and its target; both end with the end token."""

    source: list[int]
    target: list[int]


class Lengths(NamedTuple):
    """The source and target lengths of all examples, end tokens included."""

    source: Ints
    target: Ints


class Examples(Protocol):
    """Encoded examples by row number: a corpus, or a list of `EncodedPair`."""

    def __len__(self) -> int: ...
    def __getitem__(self, row: int, /) -> EncodedPair: ...


class PaddingShare(NamedTuple):
    """The fraction of an epoch's positions that are padding: in sources, in targets, and in both together."""

    source: float
    target: float
    both: float


class EpochPlan(NamedTuple):
    """The batches of an epoch, as row numbers of examples.

    Batch n has the rows `rows[bounds[i]:bounds[i + 1]]` with i = `order[n]`.
    """

    rows: Ints  # sorted by length
    bounds: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.order)

    def batch_rows(self, number: int) -> list[int]:
        """Return the rows of one batch."""
        i = self.order[number]
        rows: list[int] = self.rows[self.bounds[i] : self.bounds[i + 1]].tolist()
        return rows


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
    """Batches of examples of similar length: at most `batch_tokens` tokens per side, padding included.

    An example that is longer than that is a batch of its own. The order depends on seed and epoch only, so training
    can resume at any batch. Of `world_size` processes, each gets every `world_size`-th batch. All get the same number
    of batches: if they cannot be divided evenly, the first batches of the epoch are repeated.
    """

    def __init__(
        self,
        examples: Examples,
        batch_tokens: int,
        seed: int,
        *,
        max_rows: int | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self.examples = examples
        self.batch_tokens = batch_tokens
        self.seed = seed
        self.max_rows = max_rows if max_rows is not None else batch_tokens
        self.rank = rank
        self.world_size = world_size
        self._lengths = _lengths(examples)
        self._cached_plan: tuple[int, EpochPlan] | None = None  # epoch and plan; planning sorts all examples

    def epoch_plan(self, epoch: int) -> EpochPlan:
        """Return the plan of an epoch, with the batches of all processes."""
        if self._cached_plan is None or self._cached_plan[0] != epoch:
            self._cached_plan = (epoch, self._plan_epoch(epoch))
        return self._cached_plan[1]

    def batch_rows(self, epoch: int) -> list[list[int]]:
        """Return the rows of each batch that this process gets in an epoch."""
        plan = self.epoch_plan(epoch)
        return [plan.batch_rows(number) for number in self._own_batches(plan)]

    def n_batches(self, epoch: int) -> int:
        """Return the number of batches that each process gets in an epoch."""
        return math.ceil(len(self.epoch_plan(epoch)) / self.world_size)

    def batches(self, epoch: int, start: int = 0) -> Iterator[TextBatch]:
        """Yield the batches of this process from number `start` on."""
        plan = self.epoch_plan(epoch)
        for number in self._own_batches(plan)[start:]:
            yield collate([self.examples[row] for row in plan.batch_rows(number)])

    def padding_share(self, epoch: int) -> PaddingShare:
        """Return the fraction of padding in an epoch."""
        plan = self.epoch_plan(epoch)
        batch_sizes = np.diff(plan.bounds)
        n_tokens, n_positions = [], []  # of each side
        for lengths in self._lengths:
            widths = np.maximum.reduceat(lengths[plan.rows], plan.bounds[:-1]) if len(batch_sizes) else batch_sizes
            n_tokens.append(int(lengths.sum(dtype=np.int64)))
            n_positions.append(int((widths * batch_sizes).sum()))
        totals = zip([*n_tokens, sum(n_tokens)], [*n_positions, sum(n_positions)], strict=True)
        return PaddingShare(*((positions - tokens) / max(positions, 1) for tokens, positions in totals))

    def _own_batches(self, plan: EpochPlan) -> list[int]:
        """Return the numbers of the batches that this process gets."""
        per_process = math.ceil(len(plan) / self.world_size)
        return [(i * self.world_size + self.rank) % len(plan) for i in range(per_process)]

    def _plan_epoch(self, epoch: int) -> EpochPlan:
        rng = seeded_rng(self.seed, epoch)
        rows = rng.permutation(np.arange(len(self.examples), dtype=np.int32))  # so that equal lengths are shuffled
        rows = rows[_length_order(self._lengths.source[rows], self._lengths.target[rows])]
        longer_sides = np.maximum(self._lengths.source[rows], self._lengths.target[rows])
        bounds = self._batch_bounds(longer_sides, first_fraction=rng.random())
        return EpochPlan(rows, bounds, rng.permutation(len(bounds) - 1))

    def _batch_bounds(self, lengths: Ints, first_fraction: float) -> npt.NDArray[np.int64]:
        """Return the bounds of batches of rows with these sorted lengths: each batch takes as many rows as fit.

        The first batch takes only a random fraction of them, so that the bounds differ from epoch to epoch.
        """
        bounds = [0]
        while (start := bounds[-1]) < len(lengths):
            limit = max(1, min(self.max_rows, self.batch_tokens // max(1, int(lengths[start]))))
            widths = np.maximum.accumulate(lengths[start : start + limit])
            n_rows = int((widths * np.arange(1, len(widths) + 1) <= self.batch_tokens).sum())
            if start == 0:
                n_rows = int(n_rows * first_fraction)
            bounds.append(start + max(1, n_rows))
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


def _length_order(source: Ints, target: Ints) -> npt.NDArray[np.int64]:
    """Return the order by the length of the longer side, then by the difference of the two lengths.

    The difference ascends for even lengths and descends for odd ones, so that examples where one length ends and the
    next begins are similar on both sides. On Multi30k this gives less padding and fuller batches than sorting by
    target and then source length.
    """
    longer = np.maximum(source, target)
    width = int(longer.max(initial=0)) + 1
    key: npt.NDArray[Any] = longer.astype(np.int32 if 2 * width * width < 2**31 else np.int64)
    key *= 2 * width
    key += np.where(longer % 2 == 0, source - target, target - source)
    return np.argsort(key, kind="stable")

"""Users' item histories as two arrays, and batches of histories with target items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heedful.data.rng import seeded_rng
from heedful.errors import DataError

Ints = npt.NDArray[np.int64]


class Histories(NamedTuple):
    """The items of every user: those of user u are `items[bounds[u]:bounds[u + 1]]`, each once."""

    bounds: Ints
    items: Ints

    @classmethod
    def from_pairs(cls, users: Ints, items: Ints, n_users: int) -> Histories:
        """Group (user, item) pairs by user; each user's items keep their order.

        >>> Histories.from_pairs(np.array([1, 0, 1]), np.array([7, 8, 9]), 3).items_of(1).tolist()
        [7, 9]
        """
        order = np.argsort(users, kind="stable")
        return cls(_bounds(np.bincount(users, minlength=n_users)), items[order])

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def items_of(self, user: int) -> Ints:
        return self.items[self.bounds[user] : self.bounds[user + 1]]

    @property
    def lengths(self) -> Ints:
        return np.diff(self.bounds)

    @property
    def users(self) -> Ints:
        """The user of each item."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def item_counts(self, n_items: int) -> Ints:
        """Return the number of users of each item."""
        return np.bincount(self.items, minlength=n_items)

    def without(self, users: Ints, items: Ints) -> Histories:
        """Return the histories without these (user, item) pairs."""
        n_items = int(max(self.items.max(initial=0), items.max(initial=0))) + 1
        own_users = self.users
        remaining = ~np.isin(own_users * n_items + self.items, users * n_items + items)
        return Histories.from_pairs(own_users[remaining], self.items[remaining], len(self))


class HistoryBatch(NamedTuple):
    """A batch of entries: histories, and for each the target items that are scored with it.

    Entry e has the history `items[item_bounds[e]:item_bounds[e + 1]]` and the targets
    `targets[target_bounds[e]:target_bounds[e + 1]]`. A target never attends to itself. `labels` are 1 for positives
    and 0 for negatives.
    """

    items: Tensor
    item_bounds: Tensor
    targets: Tensor
    target_bounds: Tensor
    labels: Tensor | None = None

    @property
    def entries(self) -> int:
        """The number of entries."""
        return len(self.item_bounds) - 1

    def entry(self, number: int) -> tuple[Tensor, Tensor]:
        """Return the history and the targets of one entry."""
        return (
            self.items[int(self.item_bounds[number]) : int(self.item_bounds[number + 1])],
            self.targets[int(self.target_bounds[number]) : int(self.target_bounds[number + 1])],
        )

    def to(self, device: torch.device) -> HistoryBatch:
        labels = None if self.labels is None else self.labels.to(device)
        items, item_bounds, targets, target_bounds = (tensor.to(device) for tensor in self[:4])
        return HistoryBatch(items, item_bounds, targets, target_bounds, labels)

    def slice_entries(self, first: int, last: int) -> HistoryBatch:
        """Return the entries from `first` up to `last`."""
        keys = slice(int(self.item_bounds[first]), int(self.item_bounds[last]))
        rows = slice(int(self.target_bounds[first]), int(self.target_bounds[last]))
        return HistoryBatch(
            self.items[keys],
            self.item_bounds[first : last + 1] - keys.start,
            self.targets[rows],
            self.target_bounds[first : last + 1] - rows.start,
            None if self.labels is None else self.labels[rows],
        )


def collate_histories(
    histories: Sequence[Ints], targets: Sequence[Ints], labels: npt.NDArray[np.float32] | None = None
) -> HistoryBatch:
    """Join histories and their targets into a batch.

    >>> collate_histories([np.array([3, 4])], [np.array([5])]).entry(0)
    (tensor([3, 4]), tensor([5]))
    """
    label_tensor = None if labels is None else torch.from_numpy(labels)
    return HistoryBatch(*_join_rows(histories), *_join_rows(targets), label_tensor)


def _join_rows(rows: Sequence[Ints]) -> tuple[Tensor, Tensor]:
    joined = np.concatenate(rows) if len(rows) else np.zeros(0, np.int64)
    return torch.from_numpy(joined), torch.from_numpy(_bounds([len(row) for row in rows]))


def _bounds(sizes: npt.ArrayLike) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)


class NegativeSampler:
    """Draws negatives: items that are not in a user's history, uniformly."""

    def __init__(self, histories: Histories, n_items: int) -> None:
        n_complete = int((histories.lengths >= n_items).sum())
        if n_complete:
            raise DataError(
                f"{n_complete:,} user(s) have every item in their history, so no negative can be drawn for them"
            )
        self.n_items = n_items
        self._interactions = np.sort(self._keys(histories.users, histories.items))

    def _keys(self, users: Ints, items: Ints) -> Ints:
        """Return one number for each pair of a user and an item."""
        return np.asarray(users * self.n_items + items)

    def in_history(self, users: Ints, items: Ints) -> npt.NDArray[np.bool_]:
        """Return whether each item is in the history of its user."""
        if not len(self._interactions):
            return np.zeros(np.broadcast(users, items).shape, bool)
        keys = self._keys(users, items)
        nearest = np.minimum(np.searchsorted(self._interactions, keys), len(self._interactions) - 1)
        return np.asarray(self._interactions[nearest] == keys)

    def draw(self, users: Ints, rng: np.random.Generator) -> Ints:
        """Return one negative for each user of the array."""
        items = rng.integers(self.n_items, size=users.shape)
        retry = np.flatnonzero(self.in_history(users, items))
        while len(retry):
            items.flat[retry] = rng.integers(self.n_items, size=len(retry))
            retry = retry[self.in_history(users.flat[retry], items.flat[retry])]
        return items


class PositiveSlice(NamedTuple):
    """The positives of one entry: positions `first` up to `last` of the user's history, in the epoch's order."""

    user: int
    first: int
    last: int


class InteractionBatches:
    """Training batches: users in random order, every item of a history once per epoch as a positive.

    A batch has about `positives` positives; those of one user are in one entry, so that they share a history. With
    `groups` > 0, a history is divided at random into that many groups, and the items of each group are predicted from
    all other groups: then self-attention between the items of a history never sees the targets.
    """

    def __init__(
        self, histories: Histories, n_items: int, positives: int, negatives: int, seed: int, groups: int = 0
    ) -> None:
        self.histories, self.positives, self.negatives = histories, max(1, positives), negatives
        self.seed, self.groups = seed, groups
        self.sampler = NegativeSampler(histories, n_items)

    def plan(self, epoch: int) -> list[list[PositiveSlice]]:
        """Return the positives of each batch of an epoch."""
        batches: list[list[PositiveSlice]] = [[]]
        remaining = self.positives
        for user in seeded_rng(self.seed, epoch).permutation(len(self.histories)).tolist():
            for part in self._slices(user):
                size = part.last - part.first
                if size > remaining and batches[-1]:
                    batches.append([])
                    remaining = self.positives
                batches[-1].append(part)
                remaining -= size
        return [batch for batch in batches if batch]

    def _slices(self, user: int) -> Iterator[PositiveSlice]:
        count = len(self.histories.items_of(user))
        if not self.groups:
            for first in range(0, count, self.positives):
                yield PositiveSlice(user, first, min(first + self.positives, count))
            return
        groups = min(self.groups, count)
        for group in range(groups if count > 1 else 0):
            yield PositiveSlice(user, group * count // groups, (group + 1) * count // groups)

    def batch(self, epoch: int, number: int, parts: Sequence[PositiveSlice]) -> HistoryBatch:
        """Return the entries of these positives, each positive with its drawn negatives."""
        histories, positives = [], []
        for part in parts:
            order = self.histories.items_of(part.user)
            if self.groups:
                order = seeded_rng(self.seed, epoch, part.user).permutation(order)
            positions = slice(part.first, part.last)
            positives.append(order[positions])
            histories.append(np.delete(order, positions) if self.groups else order)
        sizes = [len(items) for items in positives]
        users = np.repeat([part.user for part in parts], sizes)
        negatives = self.sampler.draw(
            np.repeat(users[:, None], self.negatives, axis=1), seeded_rng(self.seed, epoch, "batch", number)
        )
        rows = np.concatenate([np.concatenate(positives)[:, None], negatives], axis=1)
        labels = np.zeros(rows.shape, np.float32)
        labels[:, 0] = 1.0
        targets = np.split(rows.ravel(), np.cumsum(sizes)[:-1] * rows.shape[1])
        return collate_histories(histories, targets, labels.ravel())

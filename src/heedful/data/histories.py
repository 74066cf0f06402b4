"""Which items each user took, as two arrays; and batches of histories with the items asked about."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heedful.errors import DataError

Ints = npt.NDArray[np.int64]


class Histories(NamedTuple):
    """User u took `items[bounds[u]:bounds[u + 1]]`, every item once."""

    bounds: Ints
    items: Ints

    @classmethod
    def of_pairs(cls, users: Ints, items: Ints, count: int) -> Histories:
        """Gather pairs by user; each user's items keep their order.

        >>> Histories.of_pairs(np.array([1, 0, 1]), np.array([7, 8, 9]), 3).of(1).tolist()
        [7, 9]
        """
        order = np.argsort(users, kind="stable")
        return cls(_bounds(np.bincount(users, minlength=count)), items[order])

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def of(self, user: int) -> Ints:
        return self.items[self.bounds[user] : self.bounds[user + 1]]

    @property
    def lengths(self) -> Ints:
        return np.diff(self.bounds)

    @property
    def users(self) -> Ints:
        """The user of each item."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def counts(self, items: int) -> Ints:
        """How often each item was taken."""
        return np.bincount(self.items, minlength=items)

    def without(self, users: Ints, items: Ints) -> Histories:
        """All but these pairs."""
        most = int(max(self.items.max(initial=0), items.max(initial=0))) + 1
        mine = self.users
        kept = ~np.isin(mine * most + self.items, users * most + items)
        return Histories.of_pairs(mine[kept], self.items[kept], len(self))


class HistoryBatch(NamedTuple):
    """Entries side by side: a history, and the items asked about that read it.

    Entry e has the history `items[bounds[e]:bounds[e + 1]]` and asks about `targets[cuts[e]:cuts[e + 1]]`. An
    item that is asked about never reads itself. `labels` are 1 for items that were taken.
    """

    items: Tensor
    bounds: Tensor
    targets: Tensor
    cuts: Tensor
    labels: Tensor | None = None

    @property
    def entries(self) -> int:
        return len(self.bounds) - 1

    def entry(self, at: int) -> tuple[Tensor, Tensor]:
        return (
            self.items[int(self.bounds[at]) : int(self.bounds[at + 1])],
            self.targets[int(self.cuts[at]) : int(self.cuts[at + 1])],
        )

    def to(self, device: torch.device) -> HistoryBatch:
        labels = None if self.labels is None else self.labels.to(device)
        items, bounds, targets, cuts = (part.to(device) for part in self[:4])
        return HistoryBatch(items, bounds, targets, cuts, labels)

    def part(self, first: int, last: int) -> HistoryBatch:
        """Some entries, one after the other."""
        keys = slice(int(self.bounds[first]), int(self.bounds[last]))
        rows = slice(int(self.cuts[first]), int(self.cuts[last]))
        return HistoryBatch(
            self.items[keys],
            self.bounds[first : last + 1] - keys.start,
            self.targets[rows],
            self.cuts[first : last + 1] - rows.start,
            None if self.labels is None else self.labels[rows],
        )


def batch_of(
    histories: Sequence[Ints], targets: Sequence[Ints], labels: npt.NDArray[np.float32] | None = None
) -> HistoryBatch:
    """
    >>> batch_of([np.array([3, 4])], [np.array([5])]).entry(0)
    (tensor([3, 4]), tensor([5]))
    """
    given = None if labels is None else torch.from_numpy(labels)
    return HistoryBatch(*_joined(histories), *_joined(targets), given)


def _joined(rows: Sequence[Ints]) -> tuple[Tensor, Tensor]:
    joined = np.concatenate(rows) if len(rows) else np.zeros(0, np.int64)
    return torch.from_numpy(joined), torch.from_numpy(_bounds([len(row) for row in rows]))


def _bounds(sizes: npt.ArrayLike) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)


def generator(*what: object) -> np.random.Generator:
    """Random numbers that follow from what they are for."""
    digest = hashlib.sha256(" ".join(map(str, what)).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))


class Strangers:
    """Draws items that a user has not taken."""

    def __init__(self, histories: Histories, items: int) -> None:
        whole = np.flatnonzero(histories.lengths >= items)
        if len(whole):
            raise DataError(f"{len(whole):,} users took every item: there is nothing they did not take")
        self.items = items
        self._taken = np.sort(histories.users * items + histories.items)

    def known(self, users: Ints, items: Ints) -> npt.NDArray[np.bool_]:
        """Has each user taken each item?"""
        if not len(self._taken):
            return np.zeros(np.broadcast(users, items).shape, bool)
        wanted = users * self.items + items
        at = np.searchsorted(self._taken, wanted)
        found: npt.NDArray[np.bool_] = self._taken[np.minimum(at, len(self._taken) - 1)] == wanted
        return found

    def draw(self, users: Ints, rng: np.random.Generator) -> Ints:
        """An item for each user, drawn evenly from what that user has not taken."""
        found = rng.integers(self.items, size=users.shape)
        again = np.flatnonzero(self.known(users, found))
        while len(again):
            found.flat[again] = rng.integers(self.items, size=len(again))
            again = again[self.known(users.flat[again], found.flat[again])]
        return found


class Slot(NamedTuple):
    """A user's positives of one entry: places `first` to `last` of the history in the epoch's order."""

    user: int
    first: int
    last: int


class Lessons:
    """An epoch's batches: users in random order, every item of a history once as a positive.

    A batch holds about `positives` of them, a user's side by side, so that they share one history. With
    `groups` a history falls into so many parts at random, and each part is learnt from all the others: what
    items say of one another then knows nothing of the items asked about.
    """

    def __init__(
        self, histories: Histories, items: int, positives: int, negatives: int, seed: int, groups: int = 0
    ) -> None:
        self.histories, self.positives, self.negatives = histories, max(1, positives), negatives
        self.seed, self.groups = seed, groups
        self.strangers = Strangers(histories, items)

    def plan(self, epoch: int) -> list[list[Slot]]:
        batches: list[list[Slot]] = [[]]
        room = self.positives
        for user in generator(self.seed, epoch).permutation(len(self.histories)).tolist():
            for slot in self._slots(user):
                size = slot.last - slot.first
                if size > room and batches[-1]:
                    batches.append([])
                    room = self.positives
                batches[-1].append(slot)
                room -= size
        return [batch for batch in batches if batch]

    def _slots(self, user: int) -> Iterator[Slot]:
        count = len(self.histories.of(user))
        if not self.groups:
            for first in range(0, count, self.positives):
                yield Slot(user, first, min(first + self.positives, count))
            return
        groups = min(self.groups, count)
        for group in range(groups if count > 1 else 0):
            yield Slot(user, group * count // groups, (group + 1) * count // groups)

    def batch(self, epoch: int, number: int, slots: Sequence[Slot]) -> HistoryBatch:
        """The entries of these slots, with items drawn beside each positive."""
        histories, positives = [], []
        for slot in slots:
            order = self.histories.of(slot.user)
            if self.groups:
                order = generator(self.seed, epoch, slot.user).permutation(order)
            part = slice(slot.first, slot.last)
            positives.append(order[part])
            histories.append(np.delete(order, part) if self.groups else order)
        sizes = [len(part) for part in positives]
        users = np.repeat([slot.user for slot in slots], sizes)
        drawn = self.strangers.draw(
            np.repeat(users[:, None], self.negatives, axis=1), generator(self.seed, epoch, "batch", number)
        )
        rows = np.concatenate([np.concatenate(positives)[:, None], drawn], axis=1)
        labels = np.zeros(rows.shape, np.float32)
        labels[:, 0] = 1.0
        targets = np.split(rows.ravel(), np.cumsum(sizes)[:-1] * rows.shape[1])
        return batch_of(histories, targets, labels.ravel())

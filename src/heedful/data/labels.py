"""Labels of any kind, as numbers and back; and texts in batches with theirs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.config import BALANCED, class_weight
from heedful.data.batch import Encoded, Padded, pad
from heedful.data.tokenizer import END
from heedful.errors import DataError, ModelError, nearest

MANY = 20  # labels, from which on nearly as many as texts are taken for a mistake
SHOWN = 12  # labels that an error names


def plain_label(text: str) -> str:
    """White space at the ends, and more than one between words, is no part of a label."""
    return " ".join(text.split())


class Labels:
    """Every label of the training data, in alphabetical order, with how often it occurs there."""

    def __init__(self, counts: Sequence[tuple[str, int]]) -> None:
        self.names = [name for name, _ in counts]
        self.counts = [count for _, count in counts]
        self._numbers = {name: number for number, name in enumerate(self.names)}

    @classmethod
    def learn(cls, labels: Iterable[str]) -> Labels:
        """
        >>> Labels.learn(["spam", "ham", " spam"]).names
        ['ham', 'spam']
        """
        counts = Counter(map(plain_label, labels))
        if len(counts) < 2:
            only = f'the only one is "{next(iter(counts))}"' if counts else "there are none"
            raise DataError(f"a classifier needs two labels or more in its training data; {only}")
        total = sum(counts.values())
        if len(counts) >= MANY and 2 * len(counts) > total:
            raise DataError(
                f"{len(counts):,} different labels for {total:,} texts: are text and label the wrong way"
                " round? data.columns (or fields) names the text first, then the label"
            )
        return cls(sorted(counts.items()))

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, label: str) -> bool:
        return plain_label(label) in self._numbers

    def number(self, label: str) -> int:
        """A label's place; one that training never saw is refused."""
        found = self._numbers.get(plain_label(label))
        if found is None:
            raise DataError(
                f'the label "{plain_label(label)}" is not in the training data; {self.nearest(label)}'
            )
        return found

    def nearest(self, label: str) -> str:
        more = f" and {len(self) - SHOWN:,} more" if len(self) > SHOWN else ""
        return nearest(plain_label(label), self.names[:SHOWN]) + more

    def encode_all(self, lines: Sequence[str]) -> list[list[int]]:
        """As a corpus wants it: a number, and an end behind it."""
        return [[self.number(line), END] for line in lines]

    def weights(self, asked: Sequence[str]) -> Tensor | None:
        """What a text of each label counts; over the training data, 1 on average. None: all alike."""
        if not asked:
            return None
        counts = torch.tensor(self.counts, dtype=torch.float32)
        given = torch.ones(len(self))
        if tuple(asked) == (BALANCED,):
            given = 1 / counts
        for text in asked:
            if (pair := class_weight(text)) is not None:
                if pair[0] not in self:
                    raise DataError(f"training.class_weights: no label {pair[0]!r}; {self.nearest(pair[0])}")
                given[self.number(pair[0])] = pair[1]
        return given * counts.sum() / (given * counts).sum()

    def to_json(self) -> str:
        return json.dumps(dict(zip(self.names, self.counts, strict=True)), ensure_ascii=False)

    def save(self, path: Path) -> None:
        path.write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Labels:
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            counts = [(str(name), int(count)) for name, count in told.items()]
        except (OSError, ValueError, TypeError, AttributeError):
            raise ModelError(f"{path}: damaged: not the labels of a model") from None
        if len(counts) < 2:
            raise ModelError(f"{path}: damaged: {len(counts)} label(s)")
        return cls(counts)


class LabelBatch(NamedTuple):
    """Texts, and in training the number of each one's label, and what teachers hold it to be."""

    source: Padded
    labels: Tensor | None = None  # (batch,), int64
    taught: Tensor | None = None  # (batch, label), probabilities

    @property
    def size(self) -> int:
        return len(self.source.keep)

    def rows(self, start: int, step: int) -> LabelBatch:
        """Every `step`-th text from `start` on."""
        some = (None if given is None else given[start::step] for given in self[1:])
        return LabelBatch(self.source.rows(start, step), *some)

    def to(self, device: torch.device) -> LabelBatch:
        more = (None if given is None else given.to(device) for given in self[1:])
        return LabelBatch(self.source.to(device), *more)


def label_batch(examples: Sequence[Encoded]) -> LabelBatch:
    return LabelBatch(pad([e.source for e in examples]), torch.tensor([e.target[0] for e in examples]))

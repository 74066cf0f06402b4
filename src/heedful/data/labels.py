"""Class labels and their indices, and batches of texts with labels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.config import BALANCED, parse_class_weight
from heedful.data.asset_files import is_unicode, read_json
from heedful.data.batch import EncodedPair, Guide, Padded, pad
from heedful.data.tokenizer import END
from heedful.errors import DataError, ModelError, nearest

SUSPICIOUS_COUNT = 20  # with at least this many labels, and more than half as many as texts, columns may be swapped
MAX_LISTED = 12  # labels that an error lists


def normalize_label(text: str) -> str:
    """Return a label without white space at its ends, and with single spaces between its words."""
    return " ".join(text.split())


class Labels:
    """Every label of the training data, in alphabetical order, with its number of occurrences."""

    def __init__(self, counts: Sequence[tuple[str, int]]) -> None:
        self.names = [name for name, _ in counts]
        self.counts = [count for _, count in counts]
        self._indices = {name: index for index, name in enumerate(self.names)}

    @classmethod
    def from_labels(cls, labels: Iterable[str]) -> Labels:
        """Count the labels of the training data.

        >>> Labels.from_labels(["spam", "ham", " spam"]).names
        ['ham', 'spam']
        """
        counts = Counter(map(normalize_label, labels))
        if len(counts) < 2:
            reason = f'the only one is "{next(iter(counts))}"' if counts else "there are none"
            raise DataError(f"a classifier needs at least two labels in its training data; {reason}")
        total = sum(counts.values())
        if len(counts) >= SUSPICIOUS_COUNT and 2 * len(counts) > total:
            raise DataError(
                f"{len(counts):,} different labels for {total:,} texts: are the columns of text and label swapped?"
                " data.columns names the text first, then the label"
            )
        return cls(sorted(counts.items()))

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, label: str) -> bool:
        return normalize_label(label) in self._indices

    def index(self, label: str) -> int:
        """Return the index of a label; raise a DataError if it is not in the training data."""
        index = self._indices.get(normalize_label(label))
        if index is None:
            raise DataError(f'the label "{normalize_label(label)}" is not in the training data; {self.suggest(label)}')
        return index

    def suggest(self, label: str) -> str:
        """Return a hint with the nearest label, or with the first known ones."""
        return nearest(normalize_label(label), self.names, MAX_LISTED)

    def encode_all(self, lines: Sequence[str]) -> list[list[int]]:
        """Encode labels as a `Vocabulary` does: the index of the label, then the end token."""
        return [[self.index(line), END] for line in lines]

    def class_weights(self, setting: Sequence[str]) -> Tensor | None:
        """Return the loss weight of each label for `training.class_weights`, 1 on average over the training data.

        None: every label has the same weight.
        """
        if not setting:
            return None
        counts = torch.tensor(self.counts, dtype=torch.float32)
        weights = torch.ones(len(self))
        if tuple(setting) == (BALANCED,):
            weights = 1 / counts
        for text in setting:
            if (pair := parse_class_weight(text)) is not None:
                if pair[0] not in self:
                    raise DataError(f"training.class_weights: no label {pair[0]!r}; {self.suggest(pair[0])}")
                weights[self.index(pair[0])] = pair[1]
        return weights * counts.sum() / (weights * counts).sum()

    def to_json(self) -> str:
        return json.dumps(dict(zip(self.names, self.counts, strict=True)), ensure_ascii=False)

    def save(self, path: Path) -> None:
        path.write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Labels:
        """Load the labels of a model folder."""
        try:
            content = read_json(path)
        except (OSError, ValueError):
            raise ModelError(f"{path}: damaged: not the labels of a model") from None
        if not isinstance(content, dict) or not all(type(n) is int and 0 <= n < 2**63 for n in content.values()):
            raise ModelError(f"{path}: damaged: not labels with their numbers of texts")
        if len(content) < 2:
            raise ModelError(f"{path}: damaged: {len(content)} label(s), expected at least 2")
        odd = next((name for name in content if name != normalize_label(name) or not is_unicode(name)), None)
        if odd is not None:
            raise ModelError(f"{path}: damaged: {odd!r} is no label that training writes")
        return cls(list(content.items()))


class LabelBatch(NamedTuple):
    """Texts, and in training their labels, the teachers' probabilities and the guide of the pooling attention."""

    source: Padded
    labels: Tensor | None = None  # (batch,), int64
    teacher_probs: Tensor | None = None  # (batch, label)
    guide: Guide | None = None

    @property
    def size(self) -> int:
        return len(self.source.keep)

    def rows(self, start: int, step: int) -> LabelBatch:
        """Return every `step`-th text from `start` on."""
        source = self.source.rows(start, step)
        labels, probs = (None if tensor is None else tensor[start::step] for tensor in self[1:3])
        guide = None if self.guide is None else self.guide.rows(start, step, 1, source.keep.shape[1])
        return LabelBatch(source, labels, probs, guide)

    def to(self, device: torch.device) -> LabelBatch:
        labels, probs = (None if tensor is None else tensor.to(device) for tensor in self[1:3])
        return LabelBatch(self.source.to(device), labels, probs, None if self.guide is None else self.guide.to(device))


def collate_labels(examples: Sequence[EncodedPair]) -> LabelBatch:
    """Pad encoded texts into a batch with their labels."""
    return LabelBatch(pad([e.source for e in examples]), torch.tensor([e.target[0] for e in examples]))

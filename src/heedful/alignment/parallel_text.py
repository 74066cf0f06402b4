"""Sentence pairs as ids for the statistical aligner."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.kernels.alignment import NULL, ParallelIds

TextSides = tuple[str, str]  # source and target
MAX_WORDS = 1_000  # of a side; a longer pair costs too much, and is left without links


class SideIds(NamedTuple):
    """The ids of all sentences of one side, from 1 to `size - 1`, and where each begins."""

    ids: Tensor
    offsets: Tensor
    size: int


class ParallelText(NamedTuple):
    """Both sides of all pairs; pairs of more than `MAX_WORDS` words are empty and counted in `too_long`."""

    source: SideIds
    target: SideIds
    n_pairs: int  # of the pairs to align; those behind are only learned from
    too_long: int

    def direction(self, reverse: bool) -> ParallelIds:
        """Return the ids to align each target word with a source word; with `reverse` the sides change places."""
        left, right = (self.target, self.source) if reverse else (self.source, self.target)
        return ParallelIds(left.ids, left.offsets, right.ids - 1, right.offsets)


class _SideBuilder:
    def __init__(self, lowercase: bool, prefix: int) -> None:
        self.lowercase, self.prefix = lowercase, prefix
        self.numbers: dict[str, int] = {}
        self.ids, self.ends = array("q"), array("q", [0])

    def add(self, words: Sequence[str]) -> None:
        numbers = self.numbers
        for word in words:
            text = word.lower() if self.lowercase else word
            self.ids.append(numbers.setdefault(text[: self.prefix] if self.prefix else text, len(numbers) + NULL + 1))
        self.ends.append(len(self.ids))

    def build(self) -> SideIds:
        ids, ends = (torch.tensor(values, dtype=torch.long) for values in (self.ids, self.ends))
        return SideIds(ids, ends, len(self.numbers) + NULL + 1)


def number_words(
    pairs: Iterable[TextSides], extra: Iterable[TextSides] = (), lowercase: bool = True, prefix: int = 0
) -> ParallelText:
    """Number the words of sentence pairs, which are split at white space.

    With `lowercase` the case of a word does not matter; with `prefix` only its first characters do, which joins the
    forms of a word where there is little text.

    >>> text = number_words([("The cat", "Le chat"), ("the cats", "les chats")], prefix=3)
    >>> text.source.ids.tolist(), text.target.ids.tolist()
    ([1, 2, 1, 2], [1, 2, 3, 2])
    """
    sides = _SideBuilder(lowercase, prefix), _SideBuilder(lowercase, prefix)
    counts = [0, 0]
    too_long = 0
    for part, part_pairs in enumerate((pairs, extra)):
        for pair in part_pairs:
            words = [text.split() for text in pair]
            if max(map(len, words)) > MAX_WORDS:
                too_long += 1
                words = [[], []]
            for side, side_words in zip(sides, words, strict=True):
                side.add(side_words)
            counts[part] += 1
    return ParallelText(sides[0].build(), sides[1].build(), counts[0], too_long)

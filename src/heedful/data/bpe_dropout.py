"""BPE-dropout (Provilkov et al. 2020): training sees words in segmentations other than the most likely one.

Each merge of two subwords is skipped with some probability. For speed, a few segmentations of every word are drawn once
from the seed, and each batch chooses among them by its own seed; so a resumed training sees the same subwords.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from random import Random

from heedful.data.batch import EncodedPair
from heedful.data.tokenizer import SPECIALS, Tokenizer

N_SEGMENTATIONS = 16  # of each word
WORD_START = "Ġ"  # the space before a word, as the tokenizers library spells it


class SegmentationSampler:
    """Draws segmentations of words over one BPE vocabulary."""

    def __init__(self, tokenizer: Tokenizer, dropout: float, seed: int) -> None:
        model = json.loads(tokenizer.to_json())["model"]
        self.dropout, self.seed = dropout, seed
        self.ids: dict[str, int] = model["vocab"]
        self.names = {i: name for name, i in self.ids.items()}
        merges = [tuple(pair.split(" ")) if isinstance(pair, str) else tuple(pair) for pair in model["merges"]]
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._cache: dict[tuple[int, ...], list[tuple[int, ...]]] = {}

    def resample(self, ids: Sequence[int], rng: Random) -> list[int]:
        """Return ids of the same text in other segmentations; special tokens stay."""
        resampled: list[int] = []
        for word in self._words(ids):
            resampled += word if word[0] < len(SPECIALS) else rng.choice(self.segmentations(word))
        return resampled

    def segmentations(self, word: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Return the segmentations of a word, the same for the same seed."""
        if word not in self._cache:
            text = "".join(self.names[i] for i in word)
            rng = Random(zlib.crc32(f"{self.seed} {text}".encode()))
            self._cache[word] = [self._segment(text, rng) for _ in range(N_SEGMENTATIONS)]
        return self._cache[word]

    def _words(self, ids: Sequence[int]) -> list[tuple[int, ...]]:
        words: list[list[int]] = []
        for i in ids:
            special = i < len(SPECIALS)
            first = special or not words or words[-1][-1] < len(SPECIALS) or self.names[i].startswith(WORD_START)
            if first:
                words.append([i])
            else:
                words[-1].append(i)
        return [tuple(word) for word in words]

    def _segment(self, text: str, rng: Random) -> tuple[int, ...]:
        """Merge subwords by rank; at every step each possible merge is skipped with the dropout probability."""
        subwords = list(text)
        while True:
            best_rank, position = None, -1
            for i in range(len(subwords) - 1):
                rank = self.ranks.get((subwords[i], subwords[i + 1]))
                if rank is not None and (best_rank is None or rank < best_rank) and rng.random() >= self.dropout:
                    best_rank, position = rank, i
            if best_rank is None:
                return tuple(self.ids[subword] for subword in subwords)
            subwords[position : position + 2] = [subwords[position] + subwords[position + 1]]


class BpeDropout:
    """BPE-dropout on both sides of an example."""

    def __init__(self, source: Tokenizer, target: Tokenizer, dropout: float, seed: int) -> None:
        self.source = SegmentationSampler(source, dropout, seed)
        self.target = self.source if target is source else SegmentationSampler(target, dropout, seed)

    def resample(self, pair: EncodedPair, rng: Random) -> EncodedPair:
        """Return the pair in other segmentations."""
        return EncodedPair(self.source.resample(pair.source, rng), self.target.resample(pair.target, rng))

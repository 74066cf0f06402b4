"""BPE-dropout (Provilkov 2020): in training, words are met in other pieces than the commonest.

Each join of two pieces is left out with some probability. Which, follows from the seed: every word has a
few ways of being cut, drawn once, and a batch draws among them from its own seed. So a training that was
stopped goes on as if it had not been.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from random import Random

from heedful.data.batch import Encoded
from heedful.data.tokenizer import SPECIALS, Tokenizer

WAYS = 16  # of cutting a word
SPACE = "Ġ"  # begins a word, in the library's spelling


class Cutter:
    """Cuts words of one vocabulary anew."""

    def __init__(self, tokenizer: Tokenizer, dropout: float, seed: int) -> None:
        model = json.loads(tokenizer.to_json())["model"]
        self.dropout, self.seed = dropout, seed
        self.ids: dict[str, int] = model["vocab"]
        self.names = {i: name for name, i in self.ids.items()}
        pairs = [tuple(pair.split(" ")) if isinstance(pair, str) else tuple(pair) for pair in model["merges"]]
        self.ranks = {pair: rank for rank, pair in enumerate(pairs)}
        self.known: dict[tuple[int, ...], list[tuple[int, ...]]] = {}

    def cut(self, ids: Sequence[int], rng: Random) -> list[int]:
        """The same text in pieces drawn anew; special tokens stay."""
        made: list[int] = []
        for word in self._words(ids):
            if word[0] < len(SPECIALS):
                made += word
            else:
                made += rng.choice(self.ways(word))
        return made

    def ways(self, word: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Some ways of cutting this word, the same for the same seed."""
        if word not in self.known:
            text = "".join(self.names[i] for i in word)
            rng = Random(zlib.crc32(f"{self.seed} {text}".encode()))
            self.known[word] = [self._drawn(text, rng) for _ in range(WAYS)]
        return self.known[word]

    def _words(self, ids: Sequence[int]) -> list[tuple[int, ...]]:
        words: list[list[int]] = []
        for i in ids:
            special = i < len(SPECIALS)
            first = special or not words or words[-1][-1] < len(SPECIALS) or self.names[i].startswith(SPACE)
            if first:
                words.append([i])
            else:
                words[-1].append(i)
        return [tuple(word) for word in words]

    def _drawn(self, text: str, rng: Random) -> tuple[int, ...]:
        """Joins by rank, each left out by chance whenever its turn comes."""
        pieces = list(text)
        while True:
            best, at = None, -1
            for i in range(len(pieces) - 1):
                rank = self.ranks.get((pieces[i], pieces[i + 1]))
                if rank is not None and (best is None or rank < best) and rng.random() >= self.dropout:
                    best, at = rank, i
            if best is None:
                return tuple(self.ids[piece] for piece in pieces)
            pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]


class Cutters:
    """For both sides of an example."""

    def __init__(self, source: Tokenizer, target: Tokenizer, dropout: float, seed: int) -> None:
        self.source = Cutter(source, dropout, seed)
        self.target = self.source if target is source else Cutter(target, dropout, seed)

    def example(self, given: Encoded, rng: Random) -> Encoded:
        return Encoded(self.source.cut(given.source, rng), self.target.cut(given.target, rng))

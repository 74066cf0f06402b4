"""What a reader says of each word of a line: how surprising it was, and which earlier words it read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from heedful.attention import PLAIN, Detail, Watch
from heedful.data.lines import sentences
from heedful.data.tokenizer import UNK
from heedful.record.fold import Array, fold
from heedful.tasks.folder import RECIPE
from heedful.tasks.read import ReaderModel, first_of, judged, longest_used
from heedful.tasks.use import LONGEST, aloud, no_longer

FIRST = "<s>"
Say = Callable[[str], None]


class Word(NamedTuple):
    """A word as it was typed; the end of a line is one too, but nothing is read after it."""

    text: str
    bits: float
    unknown: bool
    weights: tuple[float, ...]  # of `<s>` and of each earlier word; () where nothing is read

    def most(self, earlier: Sequence[str], count: int) -> list[tuple[str, float]]:
        """The earlier words that it read most, and how much of it."""
        order = sorted(range(len(self.weights)), key=lambda i: -self.weights[i])[:count]
        return [(earlier[i], self.weights[i]) for i in order if self.weights[i] > 0]


class Line(NamedTuple):
    """A line that was read."""

    text: str
    words: list[Word]
    tokens: int

    @property
    def bits(self) -> float:
        return sum(word.bits for word in self.words)

    @property
    def perplexity(self) -> float:
        return float(2 ** (self.bits / max(1, self.tokens)))

    @property
    def names(self) -> list[str]:
        """What can be read, in order."""
        return [FIRST, *(word.text for word in self.words)]

    def plain(self) -> dict[str, Any]:
        """For JSON; `reads` has a weight for `<s>` and for each earlier word."""
        words = [
            {"word": w.text, "bits": w.bits, "unknown": w.unknown, "reads": list(w.weights)}
            for w in self.words
        ]
        total = {"tokens": self.tokens, "bits": self.bits, "perplexity": self.perplexity}
        return {"text": self.text, **(total if words else {}), "words": words}


def fitting(opened: ReaderModel, lines: Sequence[str], first: int = 1, say: Say = aloud) -> list[str]:
    """The lines under the recipe's own policy for long ones: refused, left out (blank), or cut."""
    most = longest_used(opened.recipe) or LONGEST
    limits = opened.recipe.data.model_copy(update={"max_source": most})
    return no_longer(lines, opened.words.text, limits, opened.path / RECIPE, first, say)


@torch.inference_mode()
def read_lines(opened: ReaderModel, lines: Sequence[str], first: int = 1, say: Say = aloud) -> Iterator[Line]:
    """Every line by itself, in order; of a blank one nothing is said."""
    for number, line in enumerate(fitting(opened, lines, first, say), first):
        if not line.strip():
            yield Line(line, [], 0)
            continue
        yield _read(opened, line, number, say)


def _read(opened: ReaderModel, line: str, number: int, say: Say) -> Line:
    ids = opened.words.text.encode(line)
    unknown = [i == UNK for i in ids[:-1]]
    if unknown and all(unknown):
        say(f"line {number}: {opened.name} knows none of its words, and read them all as <unk>")
    site = opened.model.alignment
    watch = PLAIN if site is None else Watch(Detail.WEIGHTS, frozenset({site}))
    (row,) = opened.words.encode_all([line])
    found = judged(opened.model, sentences([row], first_of(opened.recipe)), watch=watch)
    bits = (found.surprise.double() / math.log(2)).tolist()
    look = None if site is None else found.looks[site].weights
    matrix = None if look is None else look[0].double().mean(dim=1).numpy()
    return Line(line, _words(opened, line, ids, bits, matrix), len(ids))


def _words(
    opened: ReaderModel, line: str, ids: Sequence[int], bits: Sequence[float], matrix: Array | None
) -> list[Word]:
    """Pieces folded into words: bits are summed, weights as in a trace."""
    of_word = opened.words.text.words(ids)
    texts = line.split()
    groups: list[list[int]] = [[] for _ in texts]
    for at, word in enumerate(of_word[:-1]):
        groups[word].append(at)
    reads = None
    if matrix is not None:  # position p has read p inputs: the first token, then the words but the last
        own = matrix[:, matrix.shape[1] - matrix.shape[0] :]
        inputs = [[0], *([at + 1 for at in group] for group in groups)]
        reads = fold(np.asarray(own), inputs, inputs)
    made = []
    for at, (text, group) in enumerate(zip(texts, groups, strict=True)):
        weights = () if reads is None else tuple(reads[at + 1, : at + 1].tolist())
        gone = any(ids[i] == UNK for i in group)
        made.append(Word(text, sum(bits[i] for i in group), gone, weights))
    return [*made, Word("</s>", bits[-1], False, ())]

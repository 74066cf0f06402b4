"""Measures of captions against several references, counted as the COCO evaluation code counts them.

Texts are cut at spaces: whoever wants other tokens cuts before. BLEU-n with and without the brevity penalty
(Xu 2015 left it out, which rewards short captions: the length ratio stands beside it), ROUGE-L with beta 1.2,
CIDEr-D (Vedantam 2015; times 10, so that 1 is usual).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from heedful.evaluation.tally import Counts, Maker, References, Tally, per_output

Ngram = tuple[str, ...]
Grams = Counter[Ngram]
LONGEST = 4
BETA = 1.2
SIGMA = 6.0
TINY, SMALL = 1e-15, 1e-9  # the code's own way round divisions by nothing
SAID = "references:all|tokens:spaces|as:coco"


def ngrams(words: Sequence[str], longest: int = LONGEST) -> Grams:
    """All n-grams up to so many words, with their counts."""
    found: Grams = Counter()
    for n in range(1, longest + 1):
        found.update(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
    return found


def _bleu_row(output: str, answers: Sequence[str]) -> list[int]:
    """Right and all n-grams of each length, words written, words of the nearest (or shorter) reference."""
    words = output.split()
    cut = [answer.split() for answer in answers]
    most: Grams = Counter()
    for answer in cut:
        most |= ngrams(answer)
    right = [0] * LONGEST
    for gram, count in ngrams(words).items():
        right[len(gram) - 1] += min(count, most[gram])
    every = [max(0, len(words) - n) for n in range(LONGEST)]
    return [*right, *every, len(words), min((abs(len(a) - len(words)), len(a)) for a in cut)[1]]


def _ratio(total: Counts) -> float:
    return float((total[-2] + TINY) / (total[-1] + SMALL))


def _bleu(total: Counts, n: int, penalty: bool) -> float:
    found: float = math.prod((total[i] + TINY) / (total[LONGEST + i] + SMALL) for i in range(n)) ** (1 / n)
    ratio = _ratio(total)
    return float(100 * found * (math.exp(1 - 1 / ratio) if penalty and ratio < 1 else 1.0))


def caption_bleu_tally(n: int, penalty: bool = True) -> Maker:
    """BLEU-n of the corpus against the reference of the nearest length."""

    def make(outputs: Sequence[str], references: References) -> Tally:
        listed = per_output(outputs, references)
        rows = np.array([_bleu_row(o, a) for o, a in zip(outputs, listed, strict=True)], dtype=np.float64)
        name = f"BLEU-{n}" if penalty else f"BLEU-{n}, no brevity penalty"
        said = f"{SAID}|penalty:{'yes' if penalty else 'no'}"
        return Tally(name, rows, lambda total: _bleu(total, n, penalty), said)

    return make


def length_ratio_tally(outputs: Sequence[str], references: References) -> Tally:
    """Words written over words of the nearest references."""
    listed = per_output(outputs, references)
    rows = np.array([_bleu_row(o, a)[-2:] for o, a in zip(outputs, listed, strict=True)], dtype=np.float64)
    return Tally("length ratio", rows, _ratio, SAID)


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for x in a:
        before = 0
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], before + 1 if x == y else max(row[j], row[j - 1])
    return row[-1]


def _rouge_l(output: str, answers: Sequence[str]) -> float:
    words = output.split()
    common = [(_common(words, answer.split()), len(answer.split())) for answer in answers]
    precision = max(c / len(words) if words else 0.0 for c, _ in common)
    recall = max(c / size if size else 0.0 for c, size in common)
    return (
        (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision) if precision and recall else 0.0
    )


def caption_rouge_tally(outputs: Sequence[str], references: References) -> Tally:
    """The mean over pictures of F with beta 1.2, precision and recall each of the best reference."""
    listed = per_output(outputs, references)
    return _means("ROUGE-L", [100 * _rouge_l(o, a) for o, a in zip(outputs, listed, strict=True)])


def _means(name: str, values: Sequence[float]) -> Tally:
    rows = np.array([(value, 1.0) for value in values], dtype=np.float64)
    return Tally(name, rows, lambda total: float(total[0] / max(total[1], 1.0)), SAID)


class _Vector(NamedTuple):
    """A text as CIDEr sees it: for each n the weights of its n-grams, their norm; and its count of pairs."""

    weights: tuple[dict[Ngram, float], ...]
    norms: tuple[float, ...]
    length: int


class Cider:
    """CIDEr-D: likeness by n-grams, rare ones counting more; how rare is told by these very references."""

    def __init__(self, references: Sequence[Sequence[str]]) -> None:
        cut = [[ngrams(answer.split()) for answer in answers] for answers in references]
        self.seen: Grams = Counter()
        for answers in cut:
            self.seen.update({gram for answer in answers for gram in answer})
        self.everything = math.log(len(references))
        self.answers = [[self._vector(answer) for answer in answers] for answers in cut]

    def score(self, number: int, output: str) -> float:
        """An output's likeness to the references of one item; 1 is usual."""
        mine, answers = self._vector(ngrams(output.split())), self.answers[number]
        return 10 * sum(_alike(mine, answer) for answer in answers) / len(answers)

    def _vector(self, counts: Grams) -> _Vector:
        weights: tuple[dict[Ngram, float], ...] = tuple({} for _ in range(LONGEST))
        squares, length = [0.0] * LONGEST, 0
        for gram, count in counts.items():
            weight = count * (self.everything - math.log(max(1.0, self.seen[gram])))
            weights[len(gram) - 1][gram] = weight
            squares[len(gram) - 1] += weight**2
            length += count if len(gram) == 2 else 0
        return _Vector(weights, tuple(map(math.sqrt, squares)), length)


def cider_tally(outputs: Sequence[str], references: References) -> Tally:
    """The mean of CIDEr-D over outputs."""
    cider = Cider(per_output(outputs, references))
    return _means("CIDEr-D", [cider.score(number, output) for number, output in enumerate(outputs)])


def _alike(mine: _Vector, other: _Vector) -> float:
    """The mean over n of the cosine with counts clipped, under a Gaussian of the difference in length."""
    bell = math.exp(-((mine.length - other.length) ** 2) / (2 * SIGMA**2))
    found = 0.0
    for n in range(LONGEST):
        dots = sum(
            min(weight, other.weights[n][gram]) * other.weights[n][gram]
            for gram, weight in mine.weights[n].items()
            if gram in other.weights[n]
        )
        if mine.norms[n] and other.norms[n]:
            found += dots / (mine.norms[n] * other.norms[n]) * bell
    return found / LONGEST

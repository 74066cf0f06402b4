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

from heedful.errors import DataError

Ngram = tuple[str, ...]
Counts = Counter[Ngram]
LONGEST = 4
BETA = 1.2
SIGMA = 6.0
TINY, SMALL = 1e-15, 1e-9  # the code's own way round divisions by nothing


class CaptionBleu(NamedTuple):
    """BLEU-1 to 4, 0 to 1, with the brevity penalty and without, and how long outputs are."""

    with_penalty: tuple[float, ...]
    without: tuple[float, ...]
    length_ratio: float


def ngrams(words: Sequence[str], longest: int = LONGEST) -> Counts:
    """All n-grams up to so many words, with their counts."""
    found: Counts = Counter()
    for n in range(1, longest + 1):
        found.update(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
    return found


def _checked(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    if len(outputs) != len(references):
        raise DataError(f"{len(outputs):,} captions, but references of {len(references):,} pictures")
    if not outputs:
        raise DataError("there is no caption to measure")
    if not all(references):
        raise DataError("a picture has no reference")


def caption_bleu(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> CaptionBleu:
    """Of the corpus, against the reference of the nearest length (of two, the shorter)."""
    _checked(outputs, references)
    right, all_, written, wanted = [0] * LONGEST, [0] * LONGEST, 0, 0
    for output, answers in zip(outputs, references, strict=True):
        words = output.split()
        cut = [answer.split() for answer in answers]
        most: Counts = Counter()
        for answer in cut:
            most |= ngrams(answer)
        written += len(words)
        wanted += min((abs(len(a) - len(words)), len(a)) for a in cut)[1]
        for gram, count in ngrams(words).items():
            right[len(gram) - 1] += min(count, most[gram])
        for n in range(LONGEST):
            all_[n] += max(0, len(words) - n)
    without = []
    product = 1.0
    for n in range(LONGEST):
        product *= (right[n] + TINY) / (all_[n] + SMALL)
        without.append(product ** (1 / (n + 1)))
    ratio = (written + TINY) / (wanted + SMALL)
    penalty = math.exp(1 - 1 / ratio) if ratio < 1 else 1.0
    return CaptionBleu(tuple(b * penalty for b in without), tuple(without), ratio)


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for x in a:
        before = 0
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], before + 1 if x == y else max(row[j], row[j - 1])
    return row[-1]


def caption_rouge_l(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """The mean over pictures of F with beta 1.2, precision and recall each of the best reference."""
    _checked(outputs, references)
    total = 0.0
    for output, answers in zip(outputs, references, strict=True):
        words = output.split()
        common = [(_common(words, answer.split()), len(answer.split())) for answer in answers]
        precision = max(c / len(words) if words else 0.0 for c, _ in common)
        recall = max(c / size if size else 0.0 for c, size in common)
        if precision and recall:
            total += (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision)
    return total / len(outputs)


class _Vector(NamedTuple):
    """A text as CIDEr sees it: for each n the weights of its n-grams, their norm; and its count of pairs."""

    weights: tuple[dict[Ngram, float], ...]
    norms: tuple[float, ...]
    length: int


def cider(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """CIDEr-D: likeness by n-grams, rare ones counting more; how rare is told by these very references."""
    _checked(outputs, references)
    seen: Counts = Counter()
    cut = [[ngrams(answer.split()) for answer in answers] for answers in references]
    for answers in cut:
        seen.update({gram for answer in answers for gram in answer})
    everything = math.log(len(outputs))

    def vector(counts: Counts) -> _Vector:
        weights: tuple[dict[Ngram, float], ...] = tuple({} for _ in range(LONGEST))
        squares, length = [0.0] * LONGEST, 0
        for gram, count in counts.items():
            weight = count * (everything - math.log(max(1.0, seen[gram])))
            weights[len(gram) - 1][gram] = weight
            squares[len(gram) - 1] += weight**2
            length += count if len(gram) == 2 else 0
        return _Vector(weights, tuple(map(math.sqrt, squares)), length)

    total = 0.0
    for output, answers in zip(outputs, cut, strict=True):
        mine = vector(ngrams(output.split()))
        total += sum(_alike(mine, vector(answer)) for answer in answers) / len(answers)
    return 10 * total / len(outputs)


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

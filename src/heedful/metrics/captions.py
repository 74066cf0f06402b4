"""Caption metrics against several references, counted as the COCO evaluation code does.

Texts are split at spaces; the caller tokenizes them. BLEU-n with and without the brevity penalty (Xu 2015 left it
out, which rewards short captions; the length ratio shows how short they are), ROUGE-L with beta 1.2, and CIDEr-D
(Vedantam 2015; times 10, so that values around 1 are common).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from heedful.metrics.state import Counts, MetricSpec, MetricState, References, list_references

Ngram = tuple[str, ...]
NgramCounts = Counter[Ngram]
MAX_N = 4
ROUGE_BETA = 1.2
CIDER_SIGMA = 6.0
TINY, SMALL = 1e-15, 1e-9  # the COCO code's constants against division by zero
SIGNATURE = "references:all|tokens:spaces|as:coco"


def count_ngrams(words: Sequence[str], max_n: int = MAX_N) -> NgramCounts:
    """Return the counts of all n-grams of up to `max_n` words."""
    counts: NgramCounts = Counter()
    for n in range(1, max_n + 1):
        counts.update(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
    return counts


def _bleu_counts(output: str, references: Sequence[str]) -> list[int]:
    """Return matched and total n-grams for n = 1 to 4, the output's length, and the nearest reference length."""
    words = output.split()
    reference_words = [reference.split() for reference in references]
    max_counts: NgramCounts = Counter()
    for reference in reference_words:
        max_counts |= count_ngrams(reference)
    matched = [0] * MAX_N
    for ngram, count in count_ngrams(words).items():
        matched[len(ngram) - 1] += min(count, max_counts[ngram])
    total = [max(0, len(words) - n) for n in range(MAX_N)]
    nearest = min((abs(len(r) - len(words)), len(r)) for r in reference_words)[1]
    return [*matched, *total, len(words), nearest]


def _length_ratio(total: Counts) -> float:
    return float((total[-2] + TINY) / (total[-1] + SMALL))


def _bleu(total: Counts, n: int, penalty: bool) -> float:
    precision: float = math.prod((total[i] + TINY) / (total[MAX_N + i] + SMALL) for i in range(n)) ** (1 / n)
    ratio = _length_ratio(total)
    return float(100 * precision * (math.exp(1 - 1 / ratio) if penalty and ratio < 1 else 1.0))


def caption_bleu_state(outputs: Sequence[str], references: References, *, n: int, penalty: bool = True) -> MetricState:
    """Return the counts of corpus BLEU-n against the reference of the nearest length."""
    listed = list_references(outputs, references)
    rows = np.array([_bleu_counts(o, r) for o, r in zip(outputs, listed, strict=True)], dtype=np.float64)
    name = f"BLEU-{n}" if penalty else f"BLEU-{n}, no brevity penalty"
    signature = f"{SIGNATURE}|penalty:{'yes' if penalty else 'no'}"
    return MetricState(name, rows, lambda total: _bleu(total, n, penalty), signature)


def length_ratio_state(outputs: Sequence[str], references: References) -> MetricState:
    """Return the words of the outputs and of the references of the nearest length."""
    listed = list_references(outputs, references)
    rows = np.array([_bleu_counts(o, r)[-2:] for o, r in zip(outputs, listed, strict=True)], dtype=np.float64)
    return MetricState("length ratio", rows, _length_ratio, SIGNATURE)


def _lcs_length(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for x in a:
        diagonal = 0
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], diagonal + 1 if x == y else max(row[j], row[j - 1])
    return row[-1]


def _rouge_l(output: str, references: Sequence[str]) -> float:
    words = output.split()
    common = [(_lcs_length(words, reference.split()), len(reference.split())) for reference in references]
    precision = max(c / len(words) if words else 0.0 for c, _ in common)
    recall = max(c / length if length else 0.0 for c, length in common)
    if not precision or not recall:
        return 0.0
    return (1 + ROUGE_BETA**2) * precision * recall / (recall + ROUGE_BETA**2 * precision)


def caption_rouge_state(outputs: Sequence[str], references: References) -> MetricState:
    """Return ROUGE-L of each image: F with beta 1.2, precision and recall each of the best reference."""
    listed = list_references(outputs, references)
    return _mean_state("ROUGE-L", [100 * _rouge_l(o, r) for o, r in zip(outputs, listed, strict=True)])


def _mean_state(name: str, values: Sequence[float]) -> MetricState:
    rows = np.array([(value, 1.0) for value in values], dtype=np.float64)
    return MetricState(name, rows, lambda total: float(total[0] / max(total[1], 1.0)), SIGNATURE)


class _TfIdf(NamedTuple):
    """The tf-idf vector of a text for each n, their norms, and the number of bigrams."""

    weights: tuple[dict[Ngram, float], ...]
    norms: tuple[float, ...]
    length: int


class Cider:
    """CIDEr-D: similarity by n-grams weighted by tf-idf; document frequencies come from the references."""

    def __init__(self, references: Sequence[Sequence[str]]) -> None:
        counts = [[count_ngrams(text.split()) for text in alternatives] for alternatives in references]
        self.document_frequency: NgramCounts = Counter()
        for alternatives in counts:
            self.document_frequency.update({ngram for text in alternatives for ngram in text})
        self.log_n_documents = math.log(len(references))
        self.references = [[self._vector(text) for text in alternatives] for alternatives in counts]

    def score(self, item: int, output: str) -> float:
        """Return the similarity of an output to the references of one item; around 1 is common."""
        vector, references = self._vector(count_ngrams(output.split())), self.references[item]
        return 10 * sum(_similarity(vector, reference) for reference in references) / len(references)

    def _vector(self, counts: NgramCounts) -> _TfIdf:
        weights: tuple[dict[Ngram, float], ...] = tuple({} for _ in range(MAX_N))
        squares, length = [0.0] * MAX_N, 0
        for ngram, count in counts.items():
            weight = count * (self.log_n_documents - math.log(max(1.0, self.document_frequency[ngram])))
            weights[len(ngram) - 1][ngram] = weight
            squares[len(ngram) - 1] += weight**2
            length += count if len(ngram) == 2 else 0
        return _TfIdf(weights, tuple(map(math.sqrt, squares)), length)


def _similarity(output: _TfIdf, reference: _TfIdf) -> float:
    """Return the mean over n of the clipped cosine, times a Gaussian of the difference in length."""
    gaussian = math.exp(-((output.length - reference.length) ** 2) / (2 * CIDER_SIGMA**2))
    total = 0.0
    for n in range(MAX_N):
        dot = sum(
            min(weight, reference.weights[n][ngram]) * reference.weights[n][ngram]
            for ngram, weight in output.weights[n].items()
            if ngram in reference.weights[n]
        )
        if output.norms[n] and reference.norms[n]:
            total += dot / (output.norms[n] * reference.norms[n]) * gaussian
    return total / MAX_N


def cider_state(outputs: Sequence[str], references: References) -> MetricState:
    """Return CIDEr-D of each image."""
    cider = Cider(list_references(outputs, references))
    return _mean_state("CIDEr-D", [cider.score(item, output) for item, output in enumerate(outputs)])


CAPTION_METRICS = (
    *(
        MetricSpec(f"caption-bleu-{n}", caption_bleu_state, f"BLEU-{n} as the COCO code counts it", options={"n": n})
        for n in range(1, MAX_N + 1)
    ),
    *(
        MetricSpec(
            f"caption-bleu-{n}-raw",
            caption_bleu_state,
            f"BLEU-{n} without brevity penalty",
            options={"n": n, "penalty": False},
        )
        for n in range(1, MAX_N + 1)
    ),
    MetricSpec("caption-rouge-l", caption_rouge_state, "ROUGE-L as the COCO code counts it"),
    MetricSpec("cider", cider_state, "CIDEr-D", decimals=3),
    MetricSpec("length-ratio", length_ratio_state, "words of the captions over words of the references", decimals=3),
)

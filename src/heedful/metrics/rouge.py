"""ROUGE (Lin 2004) through the `rouge-score` package, with words of any script."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from heedful.errors import DataError, nearest
from heedful.metrics.state import Metric, MetricSpec, MetricState, References, list_references, percent
from heedful.metrics.words import split_words

Part = Literal["f1", "precision", "recall"]
VARIANTS = ("1", "2", "L")
PARTS = {"f1": "fmeasure", "precision": "precision", "recall": "recall"}  # the package's attributes


class UnicodeTokenizer:
    """A tokenizer for `rouge-score` that keeps words of any script.

    The package's own tokenizer keeps only a-z and 0-9: it cuts Vietnamese words into fragments and drops Chinese.
    """

    def __init__(self, stem: bool = False) -> None:
        self._stemmer = _porter_stemmer() if stem else None

    def tokenize(self, text: str) -> list[str]:
        """Split a text into words, stemmed if the tokenizer stems."""
        tokens = split_words(text)
        if self._stemmer is None:
            return tokens
        # as the original: only words longer than three letters; Porter's rules are for English only
        return [self._stemmer.stem(word) if len(word) > 3 and word.isascii() else word for word in tokens]


def rouge_states(
    outputs: Sequence[str],
    references: References,
    *,
    variants: Sequence[str] = VARIANTS,
    parts: Sequence[Part] = ("f1",),
    stem: bool = False,
) -> list[MetricState]:
    """Return the values of each item, for each variant and part."""
    from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]

    for label, names, known in (("ROUGE", variants, VARIANTS), ("part of ROUGE", parts, tuple(PARTS))):
        for name in names:
            if name not in known:
                raise DataError(f"{name!r}: no such {label}; {nearest(name, known)}")
    listed = list_references(outputs, references)
    scorer = RougeScorer([f"rouge{variant}" for variant in variants], tokenizer=UnicodeTokenizer(stem))
    scores = [scorer.score_multi(alternatives, output) for output, alternatives in zip(outputs, listed, strict=True)]
    signature = _signature(listed, stem)
    return [_variant_state(scores, variant, part, signature) for variant in variants for part in parts]


def rouge_state(outputs: Sequence[str], references: References, *, variant: str) -> MetricState:
    """Return the F1 values of one variant."""
    return rouge_states(outputs, references, variants=(variant,))[0]


ROUGE_METRICS = tuple(
    MetricSpec(
        f"rouge-{variant.lower()}",
        rouge_state,
        f"ROUGE-{variant} F1 ({unit}), mean over items",
        options={"variant": variant},
    )
    for variant, unit in (("1", "words"), ("2", "word pairs"), ("L", "longest common subsequence"))
)


def rouge(
    outputs: Sequence[str],
    references: References,
    *,
    variants: Sequence[str] = VARIANTS,
    parts: Sequence[Part] = ("f1",),
    stem: bool = False,
) -> list[Metric]:
    """Return ROUGE-1, ROUGE-2 and ROUGE-L, 0 to 100, as means over the items.

    ROUGE-L treats the text as one sentence. Of several references, the one with the best F1 counts. Older
    papers report the recall of the first 75 bytes or use a stemmer (the flag -m): neither is comparable with
    F1. `stem` is for English only; the signature contains it.

    >>> [f"{m.name} {m.value:.1f}" for m in rouge(["uống nước"], ["tôi uống nước"])]
    ['ROUGE-1 80.0', 'ROUGE-2 66.7', 'ROUGE-L 80.0']
    """
    states = rouge_states(outputs, references, variants=variants, parts=parts, stem=stem)
    return [state.metric() for state in states]


def _variant_state(scores: Sequence[dict[str, Any]], variant: str, part: Part, signature: str) -> MetricState:
    values = [getattr(score[f"rouge{variant}"], PARTS[part]) for score in scores]
    rows = np.column_stack([np.array(values, dtype=np.float64), np.ones(len(values))])
    name = f"ROUGE-{variant}" if part == "f1" else f"ROUGE-{variant} {part}"
    return MetricState(name, rows, percent, f"{signature}|part:{part}")


def _signature(listed: Sequence[tuple[str, ...]], stem: bool) -> str:
    counts = {len(alternatives) for alternatives in listed}
    nrefs = f"{counts.pop()}" if len(counts) == 1 else "var"
    return (
        f"nrefs:{nrefs}|case:lc|tok:heedful-words|norm:nfc|stem:{'porter' if stem else 'no'}"
        f"|mean:items|rouge-score:{version('rouge-score')}"
    )


def _porter_stemmer() -> Any:
    from nltk.stem.porter import PorterStemmer  # type: ignore[import-untyped]  # a dependency of rouge-score

    return PorterStemmer()

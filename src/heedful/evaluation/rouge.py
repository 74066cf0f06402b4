"""ROUGE (Lin 2004) through the `rouge-score` package, with words of any script."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from heedful.errors import DataError, nearest
from heedful.evaluation.tally import Metric, References, Tally, per_output, percent
from heedful.evaluation.words import words

Part = Literal["f1", "precision", "recall"]
KINDS = ("1", "2", "L")
PARTS = {"f1": "fmeasure", "precision": "precision", "recall": "recall"}  # the package's names


class UnicodeTokenizer:
    """What `rouge-score` calls to cut a text into words.

    Its own tokeniser keeps a-z and 0-9 only: of Vietnamese it compares splinters, of Chinese nothing.
    """

    def __init__(self, stem: bool = False) -> None:
        self._stemmer = _porter() if stem else None

    def tokenize(self, text: str) -> list[str]:
        found = words(text)
        if self._stemmer is None:
            return found
        # As the original: only words longer than three letters; Porter's rules know English only.
        return [self._stemmer.stem(word) if len(word) > 3 and word.isascii() else word for word in found]


def rouge_tallies(
    outputs: Sequence[str],
    references: References,
    *,
    kinds: Sequence[str] = KINDS,
    parts: Sequence[Part] = ("f1",),
    stem: bool = False,
) -> list[Tally]:
    """The values behind `rouge`, one an item: for each kind, each part."""
    from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]

    for what, asked, known in (("ROUGE", kinds, KINDS), ("part of ROUGE", parts, tuple(PARTS))):
        for name in asked:
            if name not in known:
                raise DataError(f"{name!r}: no such {what}; {nearest(name, known)}")
    listed = per_output(outputs, references)
    scorer = RougeScorer([f"rouge{kind}" for kind in kinds], tokenizer=UnicodeTokenizer(stem))
    scores = [scorer.score_multi(answers, output) for output, answers in zip(outputs, listed, strict=True)]
    return [_tally(scores, kind, part, _signature(listed, stem)) for kind in kinds for part in parts]


def rouge(
    outputs: Sequence[str],
    references: References,
    *,
    kinds: Sequence[str] = KINDS,
    parts: Sequence[Part] = ("f1",),
    stem: bool = False,
) -> list[Metric]:
    """ROUGE-1, ROUGE-2 and ROUGE-L, the mean over the items in percent.

    ROUGE-L takes the whole text as one sentence. Of several references the one with the best F1 counts.
    Older papers report recall of the first 75 bytes or use a stemmer (the flag -m): never compare those with
    F1. `stem` is for English only, and the signature tells of it.

    >>> [f"{m.name} {m.value:.1f}" for m in rouge(["uống nước"], ["tôi uống nước"])]
    ['ROUGE-1 80.0', 'ROUGE-2 66.7', 'ROUGE-L 80.0']
    """
    return [t.metric() for t in rouge_tallies(outputs, references, kinds=kinds, parts=parts, stem=stem)]


def _tally(scores: Sequence[dict[str, Any]], kind: str, part: Part, signature: str) -> Tally:
    values = [getattr(score[f"rouge{kind}"], PARTS[part]) for score in scores]
    rows = np.column_stack([np.array(values, dtype=np.float64), np.ones(len(values))])
    name = f"ROUGE-{kind}" if part == "f1" else f"ROUGE-{kind} {part}"
    return Tally(name, rows, percent, f"{signature}|part:{part}")


def _signature(listed: Sequence[tuple[str, ...]], stem: bool) -> str:
    counts = {len(answers) for answers in listed}
    nrefs = f"{counts.pop()}" if len(counts) == 1 else "var"
    return (
        f"nrefs:{nrefs}|case:lc|tok:heedful-words|norm:nfc|stem:{'porter' if stem else 'no'}"
        f"|mean:items|rouge-score:{version('rouge-score')}"
    )


def _porter() -> Any:
    from nltk.stem.porter import PorterStemmer  # type: ignore[import-untyped]  # rouge-score brings it

    return PorterStemmer()

"""The measures by name, each as a tally: what buckets and significance tests are made from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from heedful.errors import DataError, nearest
from heedful.evaluation.captions import (
    caption_bleu_tally,
    caption_rouge_tally,
    cider_tally,
    length_ratio_tally,
)
from heedful.evaluation.classes import accuracy_tally, macro_f1_tally, weighted_f1_tally
from heedful.evaluation.moses import moses_bleu_tally
from heedful.evaluation.rates import exact_tally, line_error_tally, symbol_error_tally, word_error_tally
from heedful.evaluation.rouge import rouge_tallies
from heedful.evaluation.tally import Maker, References, Tally
from heedful.evaluation.translation import bleu_tally, chrf_tally, ter_tally


def _rouge(kind: str) -> Maker:
    def make(outputs: Sequence[str], references: References) -> Tally:
        return rouge_tallies(outputs, references, kinds=(kind,))[0]

    return make


TALLIES: dict[str, Maker] = {
    "bleu": bleu_tally,
    "bleu-lc": partial(bleu_tally, lowercase=True),
    "chrf": chrf_tally,
    "ter": ter_tally,
    "rouge-1": _rouge("1"),
    "rouge-2": _rouge("2"),
    "rouge-l": _rouge("L"),
    "exact": exact_tally,
    "line-error": line_error_tally,
    "symbol-error": symbol_error_tally,
    "word-error": word_error_tally,
    **{f"caption-bleu-{n}": caption_bleu_tally(n) for n in range(1, 5)},
    **{f"caption-bleu-{n}-raw": caption_bleu_tally(n, penalty=False) for n in range(1, 5)},
    "caption-rouge-l": caption_rouge_tally,
    "cider": cider_tally,
    "length-ratio": length_ratio_tally,
    "accuracy": accuracy_tally,
    "macro-f1": macro_f1_tally,
    "weighted-f1": weighted_f1_tally,
}


MOSES = "bleu-moses:"  # and a language


def maker(metric: str | Maker) -> Maker:
    """The maker of that name; a maker is itself."""
    if not isinstance(metric, str):
        return metric
    if metric.startswith(MOSES):
        return partial(moses_bleu_tally, language=metric.removeprefix(MOSES))
    if metric not in TALLIES:
        raise DataError(f'"{metric}": no such metric; {nearest(metric, (*TALLIES, MOSES))}')
    return TALLIES[metric]


def main_of(names: Sequence[str], usual: str = "exact") -> str:
    """The metric that two systems are compared by: the first of these that can be resampled.

    >>> main_of(["meteor", "rouge", "exact"]), main_of([], "bleu")
    ('rouge-l', 'bleu')
    """
    known = ("rouge-l" if name == "rouge" else name for name in names)
    return next((name for name in known if name in TALLIES or name.startswith(MOSES)), usual)

"""BLEU, chrF and TER as sacrebleu counts them (Post 2018), with its signatures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from heedful.errors import DataError, nearest
from heedful.metrics.state import Counts, Metric, MetricSpec, MetricState, References, list_references

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as SacrebleuMetric

# sacrebleu's other tokenizers (spm, flores101, flores200, spBLEU-1K) download a model when first used
TOKENIZERS = ("13a", "intl", "zh", "char", "none", "ja-mecab", "ko-mecab")


def bleu_state(
    outputs: Sequence[str], references: References, *, tokenize: str = "13a", lowercase: bool = False
) -> MetricState:
    """Return the counts of `bleu`."""
    from sacrebleu.metrics.bleu import BLEU

    if tokenize not in TOKENIZERS:
        raise DataError(f"tokenize = {tokenize!r}: no such tokenizer; {nearest(tokenize, TOKENIZERS)}")
    try:
        # force: "none" means that the text is tokenized already, which sacrebleu would warn about
        counter = BLEU(tokenize=tokenize, lowercase=lowercase, force=tokenize == "none")
    except (ImportError, RuntimeError) as error:  # the mecab tokenizers without their packages
        raise DataError(f"tokenize = {tokenize!r} cannot be used: {' '.join(str(error).split())}") from None
    state = _sacrebleu_state(counter, outputs, references)
    return replace(state, name=f"{state.name}, lowercased") if lowercase else state


def chrf_state(
    outputs: Sequence[str], references: References, *, word_order: int = 0, lowercase: bool = False
) -> MetricState:
    """Return the counts of `chrf`."""
    from sacrebleu.metrics.chrf import CHRF

    return _sacrebleu_state(CHRF(word_order=word_order, lowercase=lowercase), outputs, references)


def ter_state(outputs: Sequence[str], references: References, *, lowercase: bool = True) -> MetricState:
    """Return the counts of `ter`."""
    from sacrebleu.metrics.ter import TER

    return _sacrebleu_state(TER(case_sensitive=not lowercase), outputs, references)


BLEU = MetricSpec("bleu", bleu_state, "corpus BLEU by sacrebleu, tokenizer 13a, case-sensitive")
BLEU_LC = MetricSpec(
    "bleu-lc", bleu_state, "corpus BLEU by sacrebleu, tokenizer 13a, lowercased", options={"lowercase": True}
)
CHRF = MetricSpec("chrf", chrf_state, "chrF2 by sacrebleu: character n-grams, no tokenizer")
TER = MetricSpec("ter", ter_state, "translation edit rate by sacrebleu, case-insensitive", higher_is_better=False)


def bleu(outputs: Sequence[str], references: References, *, tokenize: str = "13a", lowercase: bool = False) -> Metric:
    """Return the BLEU of a corpus (Papineni et al. 2002), 0 to 100.

    The defaults are for detokenized text. Papers on Multi30k and IWSLT'15 score tokenized text as
    multi-bleu.perl does, which gives other values: tokenize both sides as they did, join the subwords, and
    pass `tokenize="none"` (and `lowercase=True` if the paper lowercased). The signature contains these options.

    >>> metric = bleu(["the cat sat on the mat ."], ["the cat sat on a mat ."], tokenize="none")
    >>> f"{metric.value:.2f}", metric.signature.partition("|v")[0]
    ('48.89', 'nrefs:1|case:mixed|eff:no|tok:none|smooth:exp')
    """
    return BLEU(outputs, references, tokenize=tokenize, lowercase=lowercase)


def chrf(outputs: Sequence[str], references: References, *, word_order: int = 0, lowercase: bool = False) -> Metric:
    """Return the chrF2 of a corpus (Popović 2015), 0 to 100; `word_order=2` is chrF++. It needs no tokenizer.

    >>> chrf(["same"], ["same"]).value
    100.0
    """
    return CHRF(outputs, references, word_order=word_order, lowercase=lowercase)


def ter(outputs: Sequence[str], references: References, *, lowercase: bool = True) -> Metric:
    """Return the translation edit rate (Snover et al. 2006): edits and shifts in percent of reference words.

    Lower is better. Case is ignored by default, as in Tercom and sacrebleu.

    >>> ter(["a b c d"], ["a b c e"]).value
    25.0
    """
    return TER(outputs, references, lowercase=lowercase)


def _sacrebleu_state(counter: SacrebleuMetric, outputs: Sequence[str], references: References) -> MetricState:
    """Return sacrebleu's counts of each item.

    sacrebleu has no public function for them, though its own significance tests use them; a test compares the
    scores of their sums with the public `corpus_score`.
    """
    listed = list_references(outputs, references)
    rows = np.array(counter._extract_corpus_statistics(outputs, _transpose(listed)), dtype=np.float64)

    def score(total: Counts) -> float:
        return float(counter._compute_score_from_stats(total.tolist()).score)

    name = counter._compute_score_from_stats(rows.sum(axis=0).tolist()).name
    return MetricState(name, rows, score, str(counter.get_signature()))


def _transpose(listed: Sequence[tuple[str, ...]]) -> list[list[str]]:
    """Return the first references of all outputs, the second ones, and so on, as sacrebleu expects them.

    Missing references are None: an empty string would count as a reference of length 0.
    """
    width = max(map(len, listed))
    padded = [[*alternatives, *[None] * (width - len(alternatives))] for alternatives in listed]
    return [list(stream) for stream in zip(*padded, strict=True)]

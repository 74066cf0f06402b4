"""BLEU, chrF and TER as sacrebleu counts them (Post 2018), with its signatures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from heedful.errors import DataError, nearest
from heedful.evaluation.tally import Counts, Metric, References, Tally, per_output

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as SacreMetric

# sacrebleu's others (spm, flores101, flores200, spBLEU-1K) fetch a model from the network when first used.
TOKENIZERS = ("13a", "intl", "zh", "char", "none", "ja-mecab", "ko-mecab")


def bleu_tally(
    outputs: Sequence[str], references: References, *, tokenize: str = "13a", lowercase: bool = False
) -> Tally:
    """The counts behind `bleu`."""
    from sacrebleu.metrics.bleu import BLEU

    if tokenize not in TOKENIZERS:
        raise DataError(f"tokenize = {tokenize!r}: no such tokeniser; {nearest(tokenize, TOKENIZERS)}")
    try:
        # "none" is said of text that is tokenised already: sacrebleu's warning about that would be noise.
        counter = BLEU(tokenize=tokenize, lowercase=lowercase, force=tokenize == "none")
    except (ImportError, RuntimeError) as error:  # the mecab tokenisers without their packages
        raise DataError(f"tokenize = {tokenize!r} cannot be used: {' '.join(str(error).split())}") from None
    tally = _tally(counter, outputs, references, higher_is_better=True)
    return replace(tally, name=f"{tally.name}, small letters") if lowercase else tally


def chrf_tally(
    outputs: Sequence[str], references: References, *, word_order: int = 0, lowercase: bool = False
) -> Tally:
    """The counts behind `chrf`."""
    from sacrebleu.metrics.chrf import CHRF

    counter = CHRF(word_order=word_order, lowercase=lowercase)
    return _tally(counter, outputs, references, higher_is_better=True)


def ter_tally(outputs: Sequence[str], references: References, *, lowercase: bool = True) -> Tally:
    """The counts behind `ter`."""
    from sacrebleu.metrics.ter import TER

    counter = TER(case_sensitive=not lowercase)
    return _tally(counter, outputs, references, higher_is_better=False)


def bleu(
    outputs: Sequence[str], references: References, *, tokenize: str = "13a", lowercase: bool = False
) -> Metric:
    """BLEU of a corpus (Papineni et al. 2002), 0 to 100.

    The defaults are for plain, detokenised text. Papers on Multi30k and IWSLT'15 score tokenised text as
    multi-bleu.perl does, which gives other values: tokenise both sides as they did, join the subwords, and
    ask for `tokenize="none"` (with `lowercase=True` where the paper lower-cased). The signature says which.

    >>> metric = bleu(["the cat sat on the mat ."], ["the cat sat on a mat ."], tokenize="none")
    >>> f"{metric.value:.2f}", metric.signature.partition("|v")[0]
    ('48.89', 'nrefs:1|case:mixed|eff:no|tok:none|smooth:exp')
    """
    return bleu_tally(outputs, references, tokenize=tokenize, lowercase=lowercase).metric()


def chrf(
    outputs: Sequence[str], references: References, *, word_order: int = 0, lowercase: bool = False
) -> Metric:
    """chrF2 of a corpus (Popović 2015), 0 to 100; `word_order=2` is chrF++. It needs no tokeniser.

    >>> chrf(["same"], ["same"]).value
    100.0
    """
    return chrf_tally(outputs, references, word_order=word_order, lowercase=lowercase).metric()


def ter(outputs: Sequence[str], references: References, *, lowercase: bool = True) -> Metric:
    """Translation edit rate (Snover et al. 2006): edits and shifts in percent of the reference's words.

    Lower is better. Case is ignored unless asked for, as in Tercom and sacrebleu.

    >>> ter(["a b c d"], ["a b c e"]).value
    25.0
    """
    return ter_tally(outputs, references, lowercase=lowercase).metric()


def _tally(
    counter: SacreMetric, outputs: Sequence[str], references: References, *, higher_is_better: bool
) -> Tally:
    """sacrebleu's counts of each item.

    They have no public name there, though its own significance tests rest on them; a test holds the sums
    made of them to the public `corpus_score`.
    """
    listed = per_output(outputs, references)
    rows = np.array(counter._extract_corpus_statistics(outputs, _streams(listed)), dtype=np.float64)

    def score(total: Counts) -> float:
        return float(counter._compute_score_from_stats(total.tolist()).score)

    name = counter._compute_score_from_stats(rows.sum(axis=0).tolist()).name
    return Tally(name, rows, score, str(counter.get_signature()), higher_is_better)


def _streams(listed: Sequence[tuple[str, ...]]) -> list[list[str]]:
    """The first references of all outputs, the second ones, and so on, as sacrebleu wants them.

    Where an output has fewer, None: an empty string would count as a reference of length 0.
    """
    width = max(map(len, listed))
    padded = [[*answers, *[None] * (width - len(answers))] for answers in listed]
    return [list(stream) for stream in zip(*padded, strict=True)]

"""Error rates, named apart, since three of them go by the name of WER; exact match; perplexity."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np

from heedful.errors import DataError, nearest
from heedful.evaluation.tally import Metric, References, Tally, one_each, per_output, percent

Split = Literal["spaces", "characters", "auto"]
SPLITS = ("spaces", "characters", "auto")


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """The least number of insertions, deletions and substitutions from one to the other (Levenshtein).

    Myers' bit-parallel algorithm (1999, in Hyyrö's form of 2003): a column of the table is two whole
    numbers of as many bits as `first` has symbols, `up` where the column rises from one row to the next and
    `down` where it falls; Python's long integers do a column in a dozen operations.

    >>> edit_distance("kitten", "sitting"), edit_distance(["a", "b"], [])
    (3, 2)
    """
    if not first:
        return len(second)
    where: dict[Hashable, int] = {}  # bit i: first[i] is this symbol
    for i, symbol in enumerate(first):
        where[symbol] = where.get(symbol, 0) | 1 << i
    full = (1 << len(first)) - 1
    last = 1 << len(first) - 1
    up, down, distance = full, 0, len(first)
    for symbol in second:
        match = where.get(symbol, 0)
        zero = (((match & up) + up) ^ up) | match | down  # no cost along the diagonal
        right = down | ~(zero | up) & full  # the last row's change from column to column
        left = up & zero
        distance += bool(right & last) - bool(left & last)
        right = right << 1 | 1  # the first row rises with every column: there is nothing to match
        up = (left << 1 | ~(zero | right)) & full
        down = right & zero & full
    return distance


def exact_tally(outputs: Sequence[str], references: References) -> Tally:
    """The counts behind `exact_match`."""
    rows = [[same, 1] for same in _same(outputs, references)]
    return Tally("exact match", np.array(rows, dtype=np.float64), percent, f"unit:line|{AS_GIVEN}")


def line_error_tally(outputs: Sequence[str], references: References) -> Tally:
    """The counts behind `line_error_rate`."""
    rows = np.array([[not same, 1] for same in _same(outputs, references)], dtype=np.float64)
    signature = f"unit:line|{AS_GIVEN}|sigmorphon:WER"
    return Tally("line error rate", rows, percent, signature, higher_is_better=False)


def symbol_error_tally(outputs: Sequence[str], references: References, split: Split = "auto") -> Tally:
    """The counts behind `symbol_error_rate`."""
    if split not in SPLITS:
        raise DataError(f"split = {split!r}: no such way to split; {nearest(split, SPLITS)}")
    answers = one_each("symbol error rate", outputs, references)
    unit = _choose_split(answers) if split == "auto" else split
    rows = [_edits(output, answer, unit) for output, answer in zip(outputs, answers, strict=True)]
    signature = f"unit:{unit}|{AS_GIVEN}" + ("|sigmorphon:PER" if unit == "spaces" else "")
    return Tally("symbol error rate", np.array(rows, np.float64), percent, signature, higher_is_better=False)


def word_error_tally(outputs: Sequence[str], references: References) -> Tally:
    """The counts behind `word_error_rate`."""
    answers = one_each("word error rate", outputs, references)
    rows = [_edits(output, answer, "spaces") for output, answer in zip(outputs, answers, strict=True)]
    signature = f"unit:words|{AS_GIVEN}|speech:WER"
    return Tally("word error rate", np.array(rows, np.float64), percent, signature, higher_is_better=False)


def exact_match(outputs: Sequence[str], references: References) -> Metric:
    """How many lines in a hundred are exactly a reference; runs of white space count as one space.

    >>> exact_match(["k a t", "d o g"], ["k  a t ", "d ɔ g"]).value
    50.0
    """
    return exact_tally(outputs, references).metric()


def line_error_rate(outputs: Sequence[str], references: References) -> Metric:
    """How many lines in a hundred are not exactly right.

    SIGMORPHON's grapheme-to-phoneme tasks call this WER: there a line is a word.

    >>> line_error_rate(["k a t", "d o g"], ["k a t", "d ɔ g"]).value
    50.0
    """
    return line_error_tally(outputs, references).metric()


def symbol_error_rate(outputs: Sequence[str], references: References, split: Split = "auto") -> Metric:
    """Edits between the symbols of output and reference, summed, in percent of all reference symbols.

    With phones between spaces this is the phone error rate (SIGMORPHON's PER), with characters the character
    error rate; it may exceed 100. `auto`: symbols stand between spaces if at least half of the references
    hold a space, else they are the characters (code points). The references alone decide, once for the
    corpus, so that two systems are measured alike; the signature tells the unit.

    >>> symbol_error_rate(["k a t", "d o g"], ["k æ t", "d ɔ g z"]).value  # 3 edits, 7 symbols
    42.857142857142854
    """
    return symbol_error_tally(outputs, references, split).metric()


def word_error_rate(outputs: Sequence[str], references: References) -> Metric:
    """Edits between words, summed, in percent of all reference words: WER as in speech recognition.

    Not SIGMORPHON's WER: that is `line_error_rate`.

    >>> word_error_rate(["the cat sat down"], ["the cat sits"]).value
    66.66666666666667
    """
    return word_error_tally(outputs, references).metric()


def perplexity(total_logp: float, tokens: int) -> Metric:
    """`exp(-total_logp / tokens)`: natural logarithms, summed over all tokens, end tokens among them.

    Comparable only between models that predict the same tokens.

    >>> perplexity(4 * math.log(0.25), 4).value
    4.0
    """
    if tokens < 1:
        raise DataError(f"perplexity of {tokens} tokens: expected at least 1")
    if total_logp > 1e-6 * tokens:  # rounding may leave a sure model a hair above 0
        raise DataError(
            f"total_logp = {total_logp}: a sum of log-probabilities is at most 0 (a loss has the other sign)"
        )
    mean = -total_logp / tokens
    value = math.exp(mean) if not mean > 700 else math.inf
    return Metric("perplexity", value, f"log:e|tokens:{tokens}", higher_is_better=False)


AS_GIVEN = "case:mixed|space:collapsed|norm:no"  # nothing but white space is evened out before comparing


def _collapsed(text: str) -> str:
    return " ".join(text.split())


def _same(outputs: Sequence[str], references: References) -> list[bool]:
    listed = per_output(outputs, references)
    return [
        _collapsed(output) in map(_collapsed, answers)
        for output, answers in zip(outputs, listed, strict=True)
    ]


def _choose_split(references: Sequence[str]) -> Split:
    spaced = sum(" " in _collapsed(reference) for reference in references)
    return "spaces" if 2 * spaced >= len(references) else "characters"


def _edits(output: str, reference: str, split: Split) -> tuple[int, int]:
    """Edits, and the reference's symbols."""
    first: Sequence[str] = output.split() if split == "spaces" else _collapsed(output)
    second: Sequence[str] = reference.split() if split == "spaces" else _collapsed(reference)
    return edit_distance(first, second), len(second)

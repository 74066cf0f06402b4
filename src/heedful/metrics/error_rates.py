"""Exact match and error rates; three different rates are called WER, so each has a name of its own here."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np

from heedful.errors import DataError, nearest
from heedful.metrics.state import (
    Metric,
    MetricSpec,
    MetricState,
    References,
    list_references,
    percent,
    single_references,
)

Split = Literal["spaces", "characters", "auto"]
SPLITS = ("spaces", "characters", "auto")
NORMALIZATION = "case:mixed|space:collapsed|norm:no"  # only white space is normalized before comparing


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Return the Levenshtein distance: the least number of insertions, deletions and substitutions.

    Myers' bit-parallel algorithm (1999, in Hyyrö's form of 2003): a column of the table is two integers with one
    bit per symbol of `first`, `up` where the column rises from one row to the next and `down` where it falls;
    Python's long integers compute a column in a dozen operations.

    >>> edit_distance("kitten", "sitting"), edit_distance(["a", "b"], [])
    (3, 2)
    """
    if not first:
        return len(second)
    positions: dict[Hashable, int] = {}  # bit i: first[i] is this symbol
    for i, symbol in enumerate(first):
        positions[symbol] = positions.get(symbol, 0) | 1 << i
    full = (1 << len(first)) - 1
    last = 1 << len(first) - 1
    up, down, distance = full, 0, len(first)
    for symbol in second:
        match = positions.get(symbol, 0)
        zero = (((match & up) + up) ^ up) | match | down  # no cost along the diagonal
        right = down | ~(zero | up) & full  # the last row's change from column to column
        left = up & zero
        distance += bool(right & last) - bool(left & last)
        right = right << 1 | 1  # the first row rises with every column
        up = (left << 1 | ~(zero | right)) & full
        down = right & zero & full
    return distance


def exact_state(outputs: Sequence[str], references: References) -> MetricState:
    """Return the counts of `exact_match`."""
    rows = [[match, 1] for match in _exact_matches(outputs, references)]
    return MetricState("exact match", np.array(rows, dtype=np.float64), percent, f"unit:line|{NORMALIZATION}")


def line_error_state(outputs: Sequence[str], references: References) -> MetricState:
    """Return the counts of `line_error_rate`."""
    rows = np.array([[not match, 1] for match in _exact_matches(outputs, references)], dtype=np.float64)
    return MetricState("line error rate", rows, percent, f"unit:line|{NORMALIZATION}|sigmorphon:WER")


def symbol_error_state(outputs: Sequence[str], references: References, split: Split = "auto") -> MetricState:
    """Return the counts of `symbol_error_rate`."""
    if split not in SPLITS:
        raise DataError(f"split = {split!r}: no such way to split; {nearest(split, SPLITS)}")
    single = single_references("symbol error rate", outputs, references)
    unit = _choose_split(single) if split == "auto" else split
    rows = [_count_edits(output, reference, unit) for output, reference in zip(outputs, single, strict=True)]
    signature = f"unit:{unit}|{NORMALIZATION}" + ("|sigmorphon:PER" if unit == "spaces" else "")
    return MetricState("symbol error rate", np.array(rows, np.float64), percent, signature)


def word_error_state(outputs: Sequence[str], references: References) -> MetricState:
    """Return the counts of `word_error_rate`."""
    single = single_references("word error rate", outputs, references)
    rows = [_count_edits(output, reference, "spaces") for output, reference in zip(outputs, single, strict=True)]
    return MetricState("word error rate", np.array(rows, np.float64), percent, f"unit:words|{NORMALIZATION}|speech:WER")


EXACT = MetricSpec("exact", exact_state, "lines that equal a reference", unit="%")
LINE_ERROR = MetricSpec(
    "line-error",
    line_error_state,
    "lines that equal no reference; SIGMORPHON calls it WER",
    higher_is_better=False,
    unit="%",
)
SYMBOL_ERROR = MetricSpec(
    "symbol-error",
    symbol_error_state,
    "edits per reference symbol; per: symbols between spaces (phones); cer: characters",
    higher_is_better=False,
    unit="%",
    aliases={"per": {"split": "spaces"}, "cer": {"split": "characters"}},
)
WORD_ERROR = MetricSpec(
    "word-error",
    word_error_state,
    "edits per reference word, as in speech recognition",
    higher_is_better=False,
    unit="%",
    aliases={"wer": {}},
)


def exact_match(outputs: Sequence[str], references: References) -> Metric:
    """Return the percentage of lines that equal a reference; runs of white space count as one space.

    >>> exact_match(["k a t", "d o g"], ["k  a t ", "d ɔ g"]).value
    50.0
    """
    return EXACT(outputs, references)


def line_error_rate(outputs: Sequence[str], references: References) -> Metric:
    """Return the percentage of lines that equal no reference.

    SIGMORPHON's grapheme-to-phoneme tasks call this WER, because a line is a word there.

    >>> line_error_rate(["k a t", "d o g"], ["k a t", "d ɔ g"]).value
    50.0
    """
    return LINE_ERROR(outputs, references)


def symbol_error_rate(outputs: Sequence[str], references: References, split: Split = "auto") -> Metric:
    """Return the edits between the symbols of outputs and references, in percent of all reference symbols.

    With phones between spaces this is the phone error rate (SIGMORPHON's PER), with characters the character
    error rate (CER); it may exceed 100. `auto` splits at spaces if at least half of the references contain
    one, else into characters (code points). Only the references decide, once for the corpus, so that two systems
    are measured in the same unit; the signature names it.

    >>> symbol_error_rate(["k a t", "d o g"], ["k æ t", "d ɔ g z"]).value  # 3 edits, 7 symbols
    42.857142857142854
    """
    return SYMBOL_ERROR(outputs, references, split=split)


def word_error_rate(outputs: Sequence[str], references: References) -> Metric:
    """Return the edits between words in percent of all reference words: WER as in speech recognition.

    SIGMORPHON's WER is `line_error_rate`.

    >>> word_error_rate(["the cat sat down"], ["the cat sits"]).value
    66.66666666666667
    """
    return WORD_ERROR(outputs, references)


def _collapse_spaces(text: str) -> str:
    return " ".join(text.split())


def _exact_matches(outputs: Sequence[str], references: References) -> list[bool]:
    listed = list_references(outputs, references)
    return [
        _collapse_spaces(output) in map(_collapse_spaces, alternatives)
        for output, alternatives in zip(outputs, listed, strict=True)
    ]


def _choose_split(references: Sequence[str]) -> Split:
    spaced = sum(" " in _collapse_spaces(reference) for reference in references)
    return "spaces" if 2 * spaced >= len(references) else "characters"


def _count_edits(output: str, reference: str, split: Split) -> tuple[int, int]:
    """Return the edits and the number of symbols in the reference."""
    first: Sequence[str] = output.split() if split == "spaces" else _collapse_spaces(output)
    second: Sequence[str] = reference.split() if split == "spaces" else _collapse_spaces(reference)
    return edit_distance(first, second), len(second)

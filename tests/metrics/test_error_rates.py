"""Edit distances against a recursive definition, and error rates computed by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import DataError
from heedful.metrics import (
    edit_distance,
    exact_match,
    line_error_rate,
    symbol_error_rate,
    word_error_rate,
)


def recursive_distance(first: Sequence[object], second: Sequence[object]) -> int:
    """The recursive definition; shares no code with the bit-parallel algorithm."""

    @cache
    def distance(i: int, j: int) -> int:
        if i == len(first) or j == len(second):
            return len(first) - i + len(second) - j
        substitution = first[i] != second[j]
        return min(distance(i + 1, j) + 1, distance(i, j + 1) + 1, distance(i + 1, j + 1) + substitution)

    return distance(0, 0)


short_lists = st.lists(st.sampled_from("abc"), max_size=12)


@given(short_lists, short_lists)
def test_the_distance_equals_the_recursive_definition(first: list[str], second: list[str]) -> None:
    assert edit_distance(first, second) == recursive_distance(first, second)


def test_sequences_longer_than_a_machine_word_are_exact() -> None:
    rng = random.Random(1)
    for length in (63, 64, 65, 130):
        first = rng.choices("abcd", k=length)
        second = [c for c in first if rng.random() > 0.1] + rng.choices("abcd", k=5)
        assert edit_distance(first, second) == recursive_distance(first, second) == edit_distance(second, first)


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        ("", "", 0),
        ("", "abc", 3),
        ("abc", "", 3),
        ("flaw", "lawn", 2),
        ("intention", "execution", 5),
        ("a", "a", 0),
    ],
)
def test_distances_have_the_values_computed_by_hand(first: str, second: str, distance: int) -> None:
    assert edit_distance(first, second) == distance


PHONES = ["k æ t", "d ɔ g z", "f ɪ ʃ"]
OUTPUTS = ["k æ t", "d o g", "f ɪ ʃ ə s"]  # correct; 2 edits; 2 edits


def test_rates_called_wer_or_per_have_the_values_computed_by_hand() -> None:
    assert line_error_rate(OUTPUTS, PHONES).value == pytest.approx(100 * 2 / 3)
    assert symbol_error_rate(OUTPUTS, PHONES).value == pytest.approx(100 * 4 / 10)
    assert word_error_rate(["a cat sat", "hello"], ["the cat sat down", "hello"]).value == pytest.approx(100 * 2 / 5)
    assert exact_match(OUTPUTS, PHONES).value == pytest.approx(100 / 3)


def test_rates_sum_over_the_corpus_before_dividing() -> None:
    # 1 of 1 and 0 of 3 symbols: a mean over lines would be 50
    assert symbol_error_rate(["x", "a b c"], ["a", "a b c"], "spaces").value == 25


def test_rates_have_different_names_and_signatures() -> None:
    metrics = [rate(OUTPUTS, PHONES) for rate in (line_error_rate, symbol_error_rate, word_error_rate)]
    assert len({metric.name for metric in metrics}) == len({metric.signature for metric in metrics}) == 3
    assert not any(metric.higher_is_better for metric in metrics)
    assert exact_match(OUTPUTS, PHONES).higher_is_better
    assert "sigmorphon:WER" in metrics[0].signature
    assert "unit:spaces" in metrics[1].signature
    assert "sigmorphon:PER" in metrics[1].signature
    assert "speech:WER" in metrics[2].signature


def test_the_references_decide_what_a_symbol_is() -> None:
    letters = symbol_error_rate(["kat", "dox"], ["cat", "dog"])
    assert letters.value == pytest.approx(100 * 2 / 6)
    assert "unit:characters" in letters.signature
    assert "PER" not in letters.signature
    # one name of two words among many of one does not make words the symbols
    names = symbol_error_rate(["Pariz", "Roma", "New Yor"], ["Paris", "Roma", "New York"])
    assert names.value == pytest.approx(100 * 2 / 17)  # 5 + 4 + 8; the space is a symbol
    # a word of one phone among longer ones has one symbol; the outputs do not decide
    assert "unit:spaces" in symbol_error_rate(["abc", "k", "x"], ["a", "k æ t", "ʃ ɪ p"]).signature
    assert symbol_error_rate(["abc", "k æ t"], ["a", "k æ t"]).value == 25
    assert "unit:characters" in symbol_error_rate(["a b c", "a b"], ["abc", "ab"]).signature


def test_the_split_can_be_given() -> None:
    assert symbol_error_rate(["a bc"], ["a bd"], "spaces").value == 50
    assert symbol_error_rate(["a bc"], ["a bd"], "characters").value == 25
    with pytest.raises(DataError, match="split = 'space': no such way to split; did you mean \"spaces\""):
        symbol_error_rate(["a"], ["a"], "space")  # type: ignore[arg-type]


def test_only_white_space_is_normalized() -> None:
    assert exact_match([" a\u00a0 b\t", "a b"], ["a b", " a  b"]).value == 100
    assert symbol_error_rate([" ab "], ["ab"], "characters").value == 0
    assert exact_match(["A"], ["a"]).value == 0
    assert exact_match(["ab"], ["a b"]).value == 0


def test_a_line_may_equal_any_of_its_references() -> None:
    references = [["a", "b"], ["c"]]
    assert exact_match(["b", "d"], references).value == 50
    assert line_error_rate(["b", "d"], references).value == 50
    for rate in (symbol_error_rate, word_error_rate):
        with pytest.raises(DataError, match="error rate takes one reference per output; output 1 has 2"):
            rate(["b", "d"], references)


def test_empty_references_count_as_no_symbols() -> None:
    assert symbol_error_rate(["a b"], [""], "spaces").value == 100
    assert symbol_error_rate([""], [""], "spaces").value == 0
    assert symbol_error_rate(["a b c", "d"], ["", "d"], "spaces").value == 300  # a rate may exceed 100

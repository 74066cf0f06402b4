"""Edit distances against a recursion, error rates by hand, perplexity."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import DataError
from heedful.evaluation import (
    edit_distance,
    exact_match,
    line_error_rate,
    perplexity,
    symbol_error_rate,
    word_error_rate,
)


def plain_distance(first: Sequence[object], second: Sequence[object]) -> int:
    """The definition as a recursion; shares nothing with the bit-parallel one."""

    @cache
    def rest(i: int, j: int) -> int:
        if i == len(first) or j == len(second):
            return len(first) - i + len(second) - j
        return min(rest(i + 1, j) + 1, rest(i, j + 1) + 1, rest(i + 1, j + 1) + (first[i] != second[j]))

    return rest(0, 0)


few = st.lists(st.sampled_from("abc"), max_size=12)


@given(few, few)
def test_the_distance_is_the_recursions(first: list[str], second: list[str]) -> None:
    assert edit_distance(first, second) == plain_distance(first, second)


def test_long_sequences_need_more_than_a_machine_word() -> None:
    rng = random.Random(1)
    for length in (63, 64, 65, 130):
        first = rng.choices("abcd", k=length)
        second = [c for c in first if rng.random() > 0.1] + rng.choices("abcd", k=5)
        assert edit_distance(first, second) == plain_distance(first, second) == edit_distance(second, first)


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
def test_distances_by_hand(first: str, second: str, distance: int) -> None:
    assert edit_distance(first, second) == distance


PHONES = ["k æ t", "d ɔ g z", "f ɪ ʃ"]
HEARD = ["k æ t", "d o g", "f ɪ ʃ ə s"]  # right; 2 edits; 2 edits


def test_three_rates_that_are_called_wer_or_per() -> None:
    assert line_error_rate(HEARD, PHONES).value == pytest.approx(100 * 2 / 3)
    assert symbol_error_rate(HEARD, PHONES).value == pytest.approx(100 * 4 / 10)
    assert word_error_rate(["a cat sat", "hello"], ["the cat sat down", "hello"]).value == pytest.approx(
        100 * 2 / 5
    )
    assert exact_match(HEARD, PHONES).value == pytest.approx(100 / 3)


def test_sums_over_the_corpus_are_not_means_of_lines() -> None:
    # 1 of 1 and 0 of 3: a mean of lines would say 50
    assert symbol_error_rate(["x", "a b c"], ["a", "a b c"], "spaces").value == 25


def test_the_rates_are_named_and_signed_apart() -> None:
    metrics = [rate(HEARD, PHONES) for rate in (line_error_rate, symbol_error_rate, word_error_rate)]
    assert len({metric.name for metric in metrics}) == len({metric.signature for metric in metrics}) == 3
    assert not any(metric.higher_is_better for metric in metrics)
    assert exact_match(HEARD, PHONES).higher_is_better
    assert "sigmorphon:WER" in metrics[0].signature
    assert "unit:spaces" in metrics[1].signature
    assert "sigmorphon:PER" in metrics[1].signature
    assert "speech:WER" in metrics[2].signature


def test_symbols_are_what_most_references_show() -> None:
    letters = symbol_error_rate(["kat", "dox"], ["cat", "dog"])
    assert letters.value == pytest.approx(100 * 2 / 6)
    assert "unit:characters" in letters.signature
    assert "PER" not in letters.signature
    # one name of two words among many of one does not turn letters into words
    names = symbol_error_rate(["Pariz", "Roma", "New Yor"], ["Paris", "Roma", "New York"])
    assert names.value == pytest.approx(100 * 2 / 17)  # 5 + 4 + 8, the space between is a symbol
    # a word of one phone among longer ones is still of one phone, and the outputs have no say
    assert "unit:spaces" in symbol_error_rate(["abc", "k", "x"], ["a", "k æ t", "ʃ ɪ p"]).signature
    assert symbol_error_rate(["abc", "k æ t"], ["a", "k æ t"]).value == 25
    assert "unit:characters" in symbol_error_rate(["a b c", "a b"], ["abc", "ab"]).signature


def test_the_split_can_be_said() -> None:
    assert symbol_error_rate(["a bc"], ["a bd"], "spaces").value == 50
    assert symbol_error_rate(["a bc"], ["a bd"], "characters").value == 25
    with pytest.raises(DataError, match="split = 'space': no such way to split; did you mean \"spaces\""):
        symbol_error_rate(["a"], ["a"], "space")  # type: ignore[arg-type]


def test_only_white_space_is_evened_out() -> None:
    assert exact_match([" a\u00a0 b\t", "a b"], ["a b", " a  b"]).value == 100
    assert symbol_error_rate([" ab "], ["ab"], "characters").value == 0
    assert exact_match(["A"], ["a"]).value == 0
    assert exact_match(["ab"], ["a b"]).value == 0


def test_any_of_several_references_will_do_where_that_is_clear() -> None:
    references = [["a", "b"], ["c"]]
    assert exact_match(["b", "d"], references).value == 50
    assert line_error_rate(["b", "d"], references).value == 50
    for rate in (symbol_error_rate, word_error_rate):
        with pytest.raises(DataError, match="error rate takes one reference an output; output 1 has 2"):
            rate(["b", "d"], references)


def test_empty_references() -> None:
    assert symbol_error_rate(["a b"], [""], "spaces").value == 100
    assert symbol_error_rate([""], [""], "spaces").value == 0
    assert symbol_error_rate(["a b c", "d"], ["", "d"], "spaces").value == 300  # a rate may exceed 100


def test_perplexity() -> None:
    metric = perplexity(7 * math.log(1 / 5) + 3 * math.log(1 / 2), 10)
    assert metric.value == pytest.approx(5**0.7 * 2**0.3)
    assert not metric.higher_is_better
    assert "tokens:10" in metric.signature
    assert perplexity(0.0, 3).value == 1
    assert perplexity(-1e6, 10).value == perplexity(-math.inf, 10).value == math.inf
    assert math.isnan(perplexity(math.nan, 10).value)  # a diverged model is shown, not hidden


def test_perplexity_of_mistakes() -> None:
    with pytest.raises(DataError, match="0 tokens"):
        perplexity(-1.0, 0)
    with pytest.raises(DataError, match="a loss has the other sign"):
        perplexity(23.5, 10)
    assert perplexity(1e-9, 10).value == pytest.approx(1)  # rounding, no mistake

"""ROUGE computed by hand, in scripts that the package's own tokenizer drops, and the word splitter."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]
from rouge_score.tokenizers import DefaultTokenizer  # type: ignore[import-untyped]

from heedful.errors import DataError
from heedful.metrics import rouge, split_words


def values(outputs: list[str], references: list[str]) -> dict[str, float]:
    metrics = rouge(outputs, references, parts=("f1", "precision", "recall"))
    return {metric.name: metric.value for metric in metrics}


def test_values_equal_those_computed_by_hand() -> None:
    # 5 words against 6; common words police, the, gunman; common pairs: the gunman; longest: the gunman
    # or police .. gunman, 2
    actual = values(["the gunman killed a police"], ["police killing of the gunman today"])
    assert actual == pytest.approx(
        {
            "ROUGE-1": 100 * 2 * 3 / 11,
            "ROUGE-1 precision": 100 * 3 / 5,
            "ROUGE-1 recall": 100 * 3 / 6,
            "ROUGE-2": 100 * 2 * 1 / 9,
            "ROUGE-2 precision": 100 / 4,
            "ROUGE-2 recall": 100 / 5,
            "ROUGE-L": 100 * 2 * 2 / 11,
            "ROUGE-L precision": 100 * 2 / 5,
            "ROUGE-L recall": 100 * 2 / 6,
        }
    )


def test_word_order_counts_as_in_lins_example() -> None:
    # Lin 2004, section 3.1: S2 and S3 share as many pairs with S1, S2 keeps the order of more words
    kills, kill = "police kill the gunman", "the gunman kill police"
    assert values([kills], ["police killed the gunman"])["ROUGE-L"] == pytest.approx(75)
    assert values([kill], ["police killed the gunman"])["ROUGE-L"] == pytest.approx(50)
    assert values([kills], ["police killed the gunman"])["ROUGE-2"] == pytest.approx(100 / 3)
    assert values([kill], ["police killed the gunman"])["ROUGE-2"] == pytest.approx(100 / 3)


def test_matches_are_clipped() -> None:
    actual = values(["the the the the"], ["the cat"])
    assert actual["ROUGE-1 precision"] == 25
    assert actual["ROUGE-1 recall"] == 50


def test_the_corpus_value_is_the_mean_over_items() -> None:
    assert values(["a b", "x"], ["a b", "y"])["ROUGE-1"] == 50
    assert values(["a b c d e f", "x"], ["a b c d e f", "y"])["ROUGE-1"] == 50  # long items do not count more


def test_vietnamese_is_compared_by_its_words() -> None:
    output, reference = "bà ấy nấu cơm", "ba áy nâu cơm"
    assert values([output], [reference])["ROUGE-1"] == 25  # one word in four
    default = RougeScorer(["rouge1"]).score(reference, output)["rouge1"].fmeasure
    assert default > 0.5  # it compares fragments: b, y, n, u, c, m


def test_vietnamese_composed_or_not_is_the_same() -> None:
    line = "người Việt Nam uống nước"
    assert values([unicodedata.normalize("NFD", line)], [line])["ROUGE-2"] == 100


def test_chinese_is_compared_by_its_characters() -> None:
    # 我 爱 北 京 against 我 住 北 京: three of four; the pair 北京 of three
    actual = values(["我爱北京。"], ["我住北京"])
    assert actual["ROUGE-1"] == 75
    assert actual["ROUGE-2"] == pytest.approx(100 / 3)
    assert actual["ROUGE-L"] == 75
    assert RougeScorer(["rouge1"]).score("我住北京", "我爱北京。")["rouge1"].fmeasure == 0


def test_the_best_of_several_references_counts() -> None:
    (metric,) = rouge(["a b"], [["x y", "a b c d"]], variants=["1"])
    assert metric.value == pytest.approx(100 * 2 / 3)
    assert metric.signature.startswith("nrefs:2|")
    assert rouge(["a", "b"], ["a", ["b", "c"]])[0].signature.startswith("nrefs:var|")


def test_stemming_is_an_option_and_in_the_signature() -> None:
    plain, stemmed = (rouge(["cats running"], ["cat runs"], variants=["1"], stem=stem)[0] for stem in (False, True))
    assert (plain.value, stemmed.value) == (0, 100)
    assert "stem:no" in plain.signature
    assert "stem:porter" in stemmed.signature
    assert "tok:heedful-words" in plain.signature
    assert "rouge-score:" in plain.signature
    assert plain.signature.endswith("part:f1")
    assert rouge(["chaînes"], ["chaîne"], variants=["1"], stem=True)[0].value == 0  # Porter knows English only


def test_texts_without_words_have_nothing_in_common() -> None:
    assert set(values([""], ["a"]).values()) == set(values(["..."], ["!"]).values()) == {0}


def test_unknown_variants_and_parts_are_an_error() -> None:
    with pytest.raises(DataError, match=r"'l': no such ROUGE; did you mean \"L\"\? known: 1, 2, L"):
        rouge(["a"], ["a"], variants=["l"])
    with pytest.raises(DataError, match="'f2': no such part of ROUGE; known: f1, precision, recall"):
        rouge(["a"], ["a"], parts=["f2"])  # type: ignore[list-item]


@given(st.text(st.characters(max_codepoint=127)))
def test_on_ascii_words_equal_those_of_rouge_score(text: str) -> None:
    assert split_words(text) == DefaultTokenizer().tokenize(text)


@given(st.text())
def test_words_do_not_depend_on_how_accents_are_written(text: str) -> None:
    assert split_words(unicodedata.normalize("NFD", text)) == split_words(unicodedata.normalize("NFC", text))


@given(st.text())
def test_words_keep_every_letter_mark_and_digit_once(text: str) -> None:
    flat = unicodedata.normalize("NFC", text.lower())
    kept = [c for c in flat if unicodedata.category(c)[0] in "LMN" and c not in "\u00ad\u200c\u200d\u2060"]
    assert list("".join(split_words(text))) == kept


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ärger, naïve_café", ["ärger", "naïve", "café"]),
        ("हिन्दी में", ["हिन्दी", "में"]),  # vowel signs and virama are marks inside a word
        ("שָׁלוֹם", ["שָׁלוֹם"]),
        ("한국어 문장", ["한국어", "문장"]),  # Korean has spaces
        ("東京タワーです", list("東京タワーです")),
        ("人々々・〇", ["人", "々", "々", "〇"]),
        (
            "か\u3099っか\u309a",
            ["が", "っ", "か\u309a"],
        ),  # a mark stays with its kana, composed if possible
        ("GPU時代2", ["gpu", "時", "代", "2"]),
        ("می\u200cخواهم", ["میخواهم"]),
        ("\u0301a", ["\u0301a"]),
        ("𠮷𠮷野", ["𠮷", "𠮷", "野"]),  # beyond the basic plane
        (" … — ", []),
    ],
)
def test_words_of_many_scripts(text: str, expected: list[str]) -> None:
    assert split_words(text) == [unicodedata.normalize("NFC", word) for word in expected]

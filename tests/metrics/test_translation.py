"""BLEU, chrF and TER: sacrebleu's own examples, counts by hand, and different numbers of references."""

from __future__ import annotations

import logging
import math
import random
import sys
from functools import partial

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from heedful.errors import DataError
from heedful.metrics import bleu, chrf, get_metric, metric_by_length, ter
from heedful.metrics.translation import bleu_state

# sacrebleu's README, with one list of references per output
OUTPUTS = ["The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."]
REFERENCES = [
    ["The dog bit the man.", "The dog had bit the man."],
    ["It was not unexpected.", "No one was surprised."],
    ["The man bit him first.", "The man had bitten the dog."],
]


def test_values_are_those_of_sacrebleus_readme() -> None:
    assert bleu(OUTPUTS, REFERENCES).value == pytest.approx(48.53, abs=0.005)
    assert chrf(OUTPUTS, REFERENCES).value == pytest.approx(59.73, abs=0.005)


def test_outputs_may_have_different_numbers_of_references() -> None:
    metric = bleu(OUTPUTS, [REFERENCES[0][1:], *REFERENCES[1:]])
    assert metric.value == pytest.approx(29.44, abs=0.005)  # the README again
    assert metric.signature.startswith("nrefs:var|")


def test_an_empty_reference_counts_as_a_reference() -> None:
    assert ter(["a b"], [["a b c d", ""]]).value == 100.0  # 2 edits over the mean length (4 + 0) / 2
    assert ter(["a b"], [["a b c d"]]).value == 50.0


def test_bleu_has_the_value_computed_by_hand() -> None:
    metric = bleu(["the cat sat on the mat ."], ["the cat sat on a mat ."], tokenize="none")
    assert metric.value == pytest.approx(100 * math.exp(sum(map(math.log, [6 / 7, 4 / 6, 2 / 5, 1 / 4])) / 4))


def test_short_outputs_get_the_brevity_penalty() -> None:
    metric = bleu(["a b c d"], ["a b c d e f"], tokenize="none")
    assert metric.value == pytest.approx(100 * math.exp(1 - 6 / 4))


def test_tokenized_text_is_another_protocol() -> None:
    outputs, references = ["Ein Hund läuft über l'herbe ."], ["ein Hund läuft über l'herbe ."]
    as_papers = bleu(outputs, references, tokenize="none", lowercase=True)
    assert as_papers.value == pytest.approx(100)
    assert "tok:none" in as_papers.signature
    assert "case:lc" in as_papers.signature
    assert bleu(outputs, references).value < 90  # cased


def test_chinese_needs_its_tokenizer() -> None:
    outputs, references = ["我爱北京天安门"], ["我爱北京故宫天安门"]
    assert bleu(outputs, references).value == 0
    assert bleu(outputs, references, tokenize="zh").value > 40


def test_chrf_plus_plus_and_case() -> None:
    assert chrf(["A b"], ["a b"]).value < 100
    assert chrf(["A b"], ["a b"], lowercase=True).value == 100
    plus = chrf(OUTPUTS, REFERENCES, word_order=2)
    assert plus.name == "chrF2++"
    assert "nw:2" in plus.signature


def test_ter_counts_a_shift_once_and_is_better_when_lower() -> None:
    metric = ter(["b c a"], ["a b c"])
    assert metric.value == pytest.approx(100 / 3)
    assert not metric.higher_is_better
    assert ter(["A"], ["a"]).value == 0
    assert ter(["A"], ["a"], lowercase=False).value == 100


@pytest.mark.parametrize(("name", "public"), [("bleu", BLEU), ("chrf", CHRF), ("ter", TER)])
def test_the_counts_sum_to_the_public_score(name: str, public: type[BLEU] | type[CHRF] | type[TER]) -> None:
    rng = random.Random(1)
    outputs = [" ".join(rng.choices("abcdefg", k=rng.randint(0, 9))) for _ in range(60)]
    references = [" ".join(rng.choices("abcdefg", k=rng.randint(1, 9))) for _ in range(60)]
    state, counter = get_metric(name).state(outputs, references), public()
    for items in (list(range(60)), list(range(0, 60, 7))):
        expected = counter.corpus_score([outputs[i] for i in items], [[references[i] for i in items]])
        assert state.metric(items).value == pytest.approx(expected.score, abs=1e-9)
        assert state.metric(items).name == expected.name
    assert state.signature == str(counter.get_signature())
    assert "version:" in state.signature


def test_one_reference_may_be_a_string_or_a_list() -> None:
    single = [alternatives[0] for alternatives in REFERENCES]
    for metric in (bleu, chrf, ter):
        assert metric(OUTPUTS, single) == metric(OUTPUTS, [[reference] for reference in single])


def test_empty_outputs_get_the_worst_value() -> None:
    assert bleu(["", ""], ["a b", "c"]).value == 0
    assert chrf(["", ""], ["a b", "c"]).value == 0
    assert ter(["", ""], ["a b", "c"]).value == 100


def test_tokenized_text_with_the_default_tokenizer_gives_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    lines = ["a tokenized line ."] * 120
    with caplog.at_level(logging.WARNING, logger="sacrebleu"):
        bleu(lines, lines, tokenize="none")
        assert not caplog.records
        bleu(lines, lines)
        assert any("detokenize" in record.message for record in caplog.records)


def test_an_unknown_tokenizer_is_an_error() -> None:
    with pytest.raises(DataError, match=r"tokenize = 'int': no such tokenizer; did you mean \"intl\"\?"):
        bleu(["a"], ["a"], tokenize="int")
    with pytest.raises(DataError, match="no such tokenizer"):
        bleu(["a"], ["a"], tokenize="flores200")  # it would download a model


def test_a_tokenizer_without_its_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "MeCab", None)
    monkeypatch.delitem(sys.modules, "sacrebleu.tokenizers.tokenizer_ja_mecab", raising=False)
    with pytest.raises(DataError, match="tokenize = 'ja-mecab' cannot be used: "):
        bleu(["a"], ["a"], tokenize="ja-mecab")


def test_state_functions_with_options_work_in_buckets() -> None:
    metric = partial(bleu_state, tokenize="none", lowercase=True)
    (bucket,) = metric_by_length([4], ["A b c d"], ["a B c d"], metric=metric)
    assert bucket.metric.value == pytest.approx(100)

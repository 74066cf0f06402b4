"""BLEU as papers on Multi30k compute it."""

from __future__ import annotations

import sys

import pytest

from command_line import refused
from heedful.errors import DataError
from heedful.metrics import bleu, evaluate


def test_it_is_bleu_of_normalized_tokenized_lowercased_text() -> None:
    output, reference = "Ein Mann, der läuft – \u201eheute\u201c.", 'Ein mann, der läuft - "Heute".'
    (actual,) = evaluate(["bleu-moses:de"], [output, "Noch ein Satz hier."], [reference, "Noch ein Satz da."])
    tokenized = ['ein mann , der läuft - " heute " .', "noch ein satz hier ."]
    expected = bleu(tokenized, ['ein mann , der läuft - " heute " .', "noch ein satz da ."], tokenize="none")
    assert actual.value == pytest.approx(expected.value)
    assert "case:lc" in actual.signature
    assert "tok:none" in actual.signature
    assert "|moses:de|sacremoses:" in actual.signature


def test_an_unknown_language_is_an_error() -> None:
    message = refused("evaluate", "--metric", "bleu-moses:dee")
    assert 'did you mean "de"' in message


def test_missing_sacremoses_is_an_error_that_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(DataError, match=r"heedful\[papers\]"):
        evaluate(["bleu-moses:de"], ["a"], ["a"])

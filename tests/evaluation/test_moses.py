"""BLEU as papers on Multi30k count it."""

from __future__ import annotations

import sys

import pytest

from heedful.errors import DataError
from heedful.evaluation import bleu, evaluate
from test_cli import refused


def test_it_is_bleu_of_text_that_was_normalised_cut_and_lower_cased() -> None:
    output, reference = "Ein Mann, der läuft – \u201eheute\u201c.", 'Ein mann, der läuft - "Heute".'
    (found,) = evaluate(["bleu-moses:de"], [output, "Noch ein Satz hier."], [reference, "Noch ein Satz da."])
    cut = ['ein mann , der läuft - " heute " .', "noch ein satz hier ."]
    wanted = bleu(cut, ['ein mann , der läuft - " heute " .', "noch ein satz da ."], tokenize="none")
    assert found.value == pytest.approx(wanted.value)
    assert "case:lc" in found.signature
    assert "tok:none" in found.signature
    assert "|moses:de|sacremoses:" in found.signature


def test_mistakes_are_told() -> None:
    said = refused("evaluate", "--metric", "bleu-moses:dee")
    assert "bleu-moses:de" in said


def test_without_sacremoses_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(DataError, match=r"heedful\[papers\]"):
        evaluate(["bleu-moses:de"], ["a"], ["a"])

"""The words view of classified texts: in the terminal and as a page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import small_classifiers
from heedful.errors import TraceError
from heedful.tasks.base import TraceRequest
from heedful.tasks.classify.trace import trace_text
from heedful.trace.schema import Gold, Trace
from heedful.viz.base import TextStyle, ViewOptions
from heedful.viz.figure import draw
from heedful.viz.weighted_text import weigh_words
from heedful.viz.words import words_text

LINE = "the red soup was never dull today"


def test_gold_words_are_marked(tmp_path: Path) -> None:
    loaded = small_classifiers.random_model_folder(
        tmp_path / "m", small_classifiers.small_preset("classify-learned"), kind="bpe"
    )
    trace = trace_text(loaded, TraceRequest(LINE, gold=Gold(sure=[(4, 0), (5, 0)])))
    weighted = weigh_words(trace, ViewOptions())
    assert weighted.words == LINE.split()
    assert set(weighted.gold) == {4, 5}
    assert max(weighted.shades) == 1.0
    text = words_text(trace, style=TextStyle(60)).plain
    assert "never*" in text
    assert "*: gold word" in text
    draw(trace, tmp_path / "w.svg", "words")
    assert "ringed: gold words" in (tmp_path / "w.svg").read_text(encoding="utf-8")


def test_words_of_any_script_stay_text(tmp_path: Path) -> None:
    loaded = small_classifiers.random_model_folder(tmp_path / "m", small_classifiers.small_preset("classify-heads"))
    trace = trace_text(loaded, TraceRequest("<script> 東京 món"))
    lines = words_text(trace, style=TextStyle(30, unicode=False)).plain.splitlines()
    assert lines[2].startswith("<script>  東京   món")
    assert np.isclose(sum(weigh_words(trace, ViewOptions(head=1)).weights), 1)


def test_traces_of_other_models_are_refused(tmp_path: Path) -> None:
    mean = small_classifiers.random_model_folder(tmp_path / "m", small_classifiers.small_preset("classify-mean"))
    with pytest.raises(TraceError, match="has no attention over its input"):
        weigh_words(trace_text(mean, TraceRequest(LINE)), ViewOptions())
    tape = small_classifiers.random_model_folder(tmp_path / "t", small_classifiers.small_preset("classify-lstmn"))
    with pytest.raises(TraceError, match=r"attention inside its encoder only, .* --site enc\.tape\.0"):
        weigh_words(trace_text(tape, TraceRequest(LINE)), ViewOptions())
    with pytest.raises(TraceError, match="words: needs a text with one label, but this trace has 4 queries"):
        weigh_words(Trace.from_weights(["a"], ["b", "c", "d", "e"], [[1.0]] * 4), ViewOptions())

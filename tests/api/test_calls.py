"""Calls of models in Python: one input or several, several outputs, and errors that name the argument."""

from __future__ import annotations

import ast
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heedful
import small_models
from heedful.arguments import to_python
from heedful.errors import (
    ArgumentError,
    DecodingCancelledError,
    DecodingError,
    DecodingTimeoutError,
    HeedfulError,
    ModelError,
)

SOURCE = Path(heedful.__file__).parent
LINE = "the red cat sees a small dog"


@pytest.fixture
def model(tmp_path: Path) -> heedful.Model:
    small_models.random_model_folder(tmp_path / "m", small_models.small_preset("cgru"))
    return heedful.load(tmp_path / "m")


def test_a_model_takes_a_line_or_a_list_of_lines(model: heedful.Model) -> None:
    output = model(LINE, max_length=6)
    assert model([LINE, "", LINE], max_length=6) == [output, "", output]
    assert model(LINE, beam=1, max_length=6) == output
    assert repr(model) == "<heedful model m: translate>"


def test_a_call_can_be_limited_in_time_and_cancelled(model: heedful.Model) -> None:
    assert model(LINE, max_length=6, max_seconds=60.0) == model(LINE, max_length=6)
    cancelled = threading.Event()
    assert model([LINE], max_length=6, should_stop=cancelled) == [model(LINE, max_length=6)]
    cancelled.set()
    with pytest.raises(DecodingCancelledError, match="decoding was cancelled after 0 of at most 6 steps"):
        model.evaluate([(LINE, LINE)], max_length=6, should_stop=cancelled)
    for call in (model, model.trace):
        with pytest.raises(DecodingCancelledError, match="decoding was cancelled after 0 of at most 6 steps"):
            call(LINE, max_length=6, should_stop=cancelled)
        with pytest.raises(DecodingTimeoutError, match=r"longer than 1e-09 s .* after 0 of at most 6 steps"):
            call(LINE, max_length=6, max_seconds=1e-9)
        with pytest.raises(DecodingError, match=r"max_seconds = 0.0: expected a number of seconds above 0"):
            call(LINE, max_seconds=0.0)


def test_a_call_has_bounds(model: heedful.Model) -> None:
    for call in (model, model.trace):
        with pytest.raises(ArgumentError, match="inputs: a call takes at most 100,000, got 100,001; make several"):
            call([""] * 100_001)
        with pytest.raises(ArgumentError, match="beam=10000000: must be at most 1000"):
            call(LINE, beam=10_000_000)
        with pytest.raises(ArgumentError, match="max_length=10001: must be at most 10000"):
            call(LINE, max_length=10_001)


def test_a_trace_can_be_edited(model: heedful.Model) -> None:
    trace = model.trace(LINE, max_length=6)
    assert isinstance(trace, heedful.Trace)
    edited = model.trace(LINE, edits=["onehot:step=1,position=0"], max_length=6)
    assert edited.parent == trace.id
    assert edited.weights()[1, 0].tolist() == [1, 0, 0, 0, 0, 0, 0, 0]
    assert np.allclose(trace.weights()[0], edited.weights()[0])
    assert model.trace(LINE, what_if=True, max_length=3).counterfactuals


def test_counterfactuals_are_computed_for_short_inputs(model: heedful.Model) -> None:
    short = model.trace(LINE, max_length=6)
    assert {edit.op for edit in short.counterfactuals} == {"onehot", "zero"}
    assert not model.trace(LINE, max_length=6, what_if=False).counterfactuals
    assert not model.trace(LINE, max_length=6, detail="weights").counterfactuals
    assert not model.trace(LINE, max_length=6, edits="uniform").counterfactuals
    assert not model.trace("the cat " * 20, max_length=30, target="le chat " * 10).counterfactuals


def test_errors_suggest_names(model: heedful.Model, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"beem: no such argument; did you mean \"beam\""):
        model(LINE, beem=3)
    with pytest.raises(ModelError, match="nowhere: no such model folder"):
        heedful.load(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="was trained to translate, not to classify"):
        heedful.load(tmp_path / "m", task="classify")


def test_several_outputs_per_input_are_returned(model: heedful.Model) -> None:
    best = model(LINE, max_length=6, beam=3)
    three = model(LINE, max_length=6, n_best=3, beam=3)
    assert len(set(three)) == 3
    assert three[0] == best
    assert model([LINE, LINE], max_length=6, n_best=3, beam=3) == [three, three]
    assert len(model(LINE, max_length=6, method="sample", n_best=2)) == 2


def test_traces_of_several_inputs(model: heedful.Model) -> None:
    other = "a small dog"
    traces = model.trace([LINE, other], max_length=6)
    assert [trace.source.text for trace in traces] == [LINE, other]
    assert traces[1].target == model.trace(other, max_length=6).target
    forced = model.trace([LINE, other], target=["le chat", "un chien"])
    assert [trace.target.text for trace in forced] == ["le chat", "un chien"]
    edited = model.trace([LINE, other], edits="onehot:step=0,position=1", max_length=6)
    assert [trace.weights()[0, 0, 1] for trace in edited] == [1.0, 1.0]
    (one,) = model.trace((line for line in [LINE]), max_length=6)
    assert one.id == model.trace(LINE, max_length=6).id


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((3,), {}, "^inputs: expected text, got int"),
        (([LINE, None],), {}, r"^inputs\[1\]: expected text, got NoneType"),
        ((LINE,), {"beam": 0}, "^beam=0: must be more than 0"),
        ((LINE,), {"method": "bean"}, '^method="bean": no such method; did you mean "beam"'),
        ((LINE * 9_000,), {"on_too_long": "error"}, 'on_too_long="cut" or skip'),
    ],
)
def test_wrong_arguments_are_named(
    model: heedful.Model, arguments: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(HeedfulError, match=message):
        model(*arguments, **options)


def test_wrong_arguments_of_traces_are_named(model: heedful.Model) -> None:
    with pytest.raises(ArgumentError, match="n_best=3: a trace records one output"):
        model.trace(LINE, n_best=3)
    with pytest.raises(ArgumentError, match="target: expected one per input, so 2, got 1"):
        model.trace([LINE, LINE], target=["le chat"])
    with pytest.raises(TypeError):  # what Python's own wrong arguments raise
        model.trace(3)
    with pytest.raises(ValueError, match="expected text"):
        model.trace(3)


def test_no_message_for_python_names_an_option_of_the_command_line() -> None:
    sources = [path for path in SOURCE.rglob("*.py") if "cli" not in path.parts]
    texts = [
        text
        for path in sources
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Raise)
        for text in string_parts(node)
    ]
    options = [text for text in texts if re.search(r"(^|[ \"])--?[a-z]", text)]
    assert len(options) > 20, "the messages of the library are not found any more"
    assert [to_python(text) for text in options if re.search(r"(^|[ \"])--?[a-z]", to_python(text))] == []


def string_parts(node: ast.AST) -> list[str]:
    """Return the text of each literal below a node; the values of an f-string count as one letter."""
    joined = [part for part in ast.walk(node) if isinstance(part, ast.JoinedStr)]
    inside = {id(value) for part in joined for value in part.values}
    texts = ["".join(str(v.value) if isinstance(v, ast.Constant) else "x" for v in part.values) for part in joined]
    return texts + [
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in inside
    ]


def test_threads_get_the_answers_that_one_thread_gets(model: heedful.Model) -> None:
    lines = [f"the red cat sees {number} dogs" for number in range(12)]
    alone = [(model(line, max_length=6), model.trace(line, max_length=6).matrix().tolist()) for line in lines]
    with ThreadPoolExecutor(4) as pool:
        together = list(
            pool.map(lambda line: (model(line, max_length=6), model.trace(line, max_length=6).matrix().tolist()), lines)
        )
    assert together == alone

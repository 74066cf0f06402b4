"""Traces of classifiers of every kind: replayed in plain loops, and asked what if."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import labels
from heedful.errors import TraceError
from heedful.record import Gold, Tensor, Trace
from heedful.tasks.classify_trace import trace_text
from heedful.tasks.tracing import Wanted, replayed
from heedful.trace import edit_of
from heedful.view.shaded import shaded, shaded_html, shaded_text

LINE = "the red soup was never dull today"
CLOSE = 1e-5
every = pytest.mark.parametrize(("preset", "changes"), labels.ALL, ids=str)


@every
def test_it_all_follows_from_the_parameters(tmp_path: Path, preset: str, changes: dict[str, Any]) -> None:
    opened = labels.folder(tmp_path / "m", labels.preset(preset, **changes))
    trace = trace_text(opened, Wanted(LINE, "full"))
    trace.save(tmp_path / "t.json")
    assert Trace.load(tmp_path / "t.json") == trace, "it reads back exactly"
    checks = replayed(trace, tmp_path / "m").checks
    assert checks is not None
    found = (
        checks.said,
        checks.output,
        *((checks.score, checks.softmax, checks.context) if trace.sites else ()),
    )
    for value in found:
        assert value is not None
        assert value < CLOSE
    assert checks.top_first
    assert [looks.site for looks in trace.sites] == [site.id for site in opened.model.sites]
    for kind, encoder in (("self", "transformer"), ("tape", "lstmn")):
        assert any(looks.kind == kind for looks in trace.sites) == (encoder in f"{preset} {changes}")


@pytest.mark.parametrize("edit", ["mask-head@enc.words:head=0", "zero@enc.words:step=2,position=2"])
def test_sentences_stay_sentences_when_nothing_of_them_is_read(tmp_path: Path, edit: str) -> None:
    config = labels.preset("classify-sentences", classifier__pooling="max")
    opened = labels.folder(tmp_path / "m", config)
    trace = trace_text(opened, Wanted("soup dull soup was never dull today", "full", edits=(edit_of(edit),)))
    checks = replayed(trace, tmp_path / "m").checks
    assert checks is not None
    for value in (checks.softmax, checks.context, checks.said, checks.output):
        assert value is not None
        assert value < CLOSE


def test_a_site_cannot_go_through_itself(tmp_path: Path) -> None:
    trace = trace_text(labels.folder(tmp_path / "m", labels.preset("classify-sentences")), Wanted(LINE))
    tree = trace.model_dump(by_alias=True)
    tree["sites"][1]["through"] = "pool"
    with pytest.raises(ValueError, match="cannot read through pool"):
        Trace.model_validate(tree)


def test_one_wrong_number_is_seen(tmp_path: Path) -> None:
    opened = labels.folder(tmp_path / "m", labels.preset("classify-final"))
    trace = trace_text(opened, Wanted(LINE))
    for name, seen in (("pool/weight", "softmax"), ("said", "output"), ("source", "score")):
        array = trace.tensors[name].array().copy()
        array.flat[1] += 0.5
        packed = Tensor.of(array, *trace.tensors[name].dims)
        bad = trace.model_copy(update={"tensors": {**trace.tensors, name: packed}})
        assert getattr(replayed(bad, tmp_path / "m").checks, seen) > 0.001, name


def test_a_tape_is_traced_word_by_word(tmp_path: Path) -> None:
    opened = labels.folder(tmp_path / "m", labels.preset("classify-lstmn", encoder__layers=2))
    trace = trace_text(opened, Wanted(LINE, "full"))
    assert [looks.site for looks in trace.sites] == ["enc.tape.0", "enc.tape.1"]
    weights = trace.weights("enc.tape.1")[:, 0]
    assert not np.triu(weights).any(), "a word reads those before it"
    assert np.allclose(weights[1:-1].sum(axis=-1), 1)
    assert not weights[-1].any(), "the end is not read"
    array = trace.tensors["enc.tape.1/value"].array().copy()
    array.flat[1] += 0.5
    packed = Tensor.of(array, *trace.tensors["enc.tape.1/value"].dims)
    bad = trace.model_copy(update={"tensors": {**trace.tensors, "enc.tape.1/value": packed}})
    checks = replayed(bad, tmp_path / "m").checks
    assert checks is not None
    assert (checks.score or 0) > 0.001
    assert (checks.context or 0) > 0.001
    moved = trace_text(opened, Wanted(LINE, "full", edits=[edit_of("onehot@enc.tape.0:step=3,position=1")]))
    assert moved.weights("enc.tape.0")[3, 0].argmax() == 1
    assert moved.steps[0].logp != trace.steps[0].logp


def test_what_if_agrees_with_single_edits(tmp_path: Path) -> None:
    opened = labels.folder(tmp_path / "m", labels.preset("classify-heads"), kind="bpe")
    trace = trace_text(opened, Wanted(LINE, lattice=True))
    assert trace.whatif
    for what in trace.whatif[::7]:
        edit = edit_of(f"{what.op}:position={what.position}")
        changed = trace_text(opened, Wanted(LINE, edits=[edit], parent=trace))
        assert what.top[0].text == changed.steps[0].top[0].text
        assert what.top[0].logp == pytest.approx(changed.steps[0].top[0].logp, abs=1e-4)
        assert changed.checks is not None
        assert (changed.checks.softmax or 0) < CLOSE, "edited rows are not compared"


def test_a_given_label_and_gold_words(tmp_path: Path) -> None:
    opened = labels.folder(tmp_path / "m", labels.preset("classify-learned"), kind="bpe")
    wanted = Wanted(LINE, target="neither good  nor bad", gold=Gold(sure=[(4, 0), (5, 0)]))
    trace = trace_text(opened, wanted)
    assert trace.target.words == ["neither good nor bad"]
    assert trace.steps[0].forced
    moved = trace_text(opened, Wanted(LINE, gold=wanted.gold, edits=[edit_of("gold")]))
    assert moved.table(specials=False).weights[0, 4:6].sum() == pytest.approx(1)
    seen = shaded(trace)
    assert seen.words == LINE.split()
    assert set(seen.gold) == {4, 5}
    assert "never*" in shaded_text(seen, 60).plain


def test_words_of_any_script_are_text_and_heads_are_shown(tmp_path: Path) -> None:
    opened = labels.folder(tmp_path / "m", labels.preset("classify-heads"))
    trace = trace_text(opened, Wanted("<script> 東京 món"))
    page = shaded_html(trace)
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<h2>Head ") == 2
    lines = shaded_text(shaded(trace), 30, blocks=False).plain.splitlines()
    assert lines[2].startswith("<script>  東京   món")
    assert np.isclose(sum(shaded(trace, head=1).weights), 1)


def test_what_cannot_be_shaded_is_said(tmp_path: Path) -> None:
    plain = labels.folder(tmp_path / "m", labels.preset("classify-mean"))
    trace = trace_text(plain, Wanted(LINE))
    with pytest.raises(TraceError, match="has no attention"):
        shaded(trace)
    tape = labels.folder(tmp_path / "t", labels.preset("classify-lstmn"))
    with pytest.raises(TraceError, match=r"only while it reads, .* --site enc\.tape\.0"):
        shaded(trace_text(tape, Wanted(LINE)))
    with pytest.raises(TraceError, match="no weights to change"):
        trace_text(plain, Wanted(LINE, edits=[edit_of("uniform")]))
    with pytest.raises(TraceError, match="here 4 tokens ask; take --view alignment"):
        shaded(Trace.from_weights(["a"], ["b", "c", "d", "e"], [[1.0]] * 4))

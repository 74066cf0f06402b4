"""Traces of classifiers of every kind: replayed in plain loops, and asked what if."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import small_classifiers
from heedful.errors import TraceError
from heedful.tasks.base import TraceRequest
from heedful.tasks.classify.trace import trace_text
from heedful.tasks.replay import replay_trace
from heedful.trace.edits import parse_edit
from heedful.trace.schema import Gold, PackedTensor, Trace

LINE = "the red soup was never dull today"
CLOSE = 1e-5
every = pytest.mark.parametrize(("preset", "changes"), small_classifiers.ALL, ids=str)


@every
def test_it_all_follows_from_the_parameters(tmp_path: Path, preset: str, changes: dict[str, Any]) -> None:
    loaded = small_classifiers.random_model_folder(tmp_path / "m", small_classifiers.small_preset(preset, **changes))
    trace = trace_text(loaded, TraceRequest(LINE, "full"))
    trace.save(tmp_path / "t.json")
    assert Trace.load(tmp_path / "t.json") == trace, "it reads back exactly"
    checks = replay_trace(trace, tmp_path / "m").checks
    assert checks is not None
    found = (
        checks.features,
        checks.output,
        *((checks.scores, checks.weights, checks.context) if trace.sites else ()),
    )
    for value in found:
        assert value is not None
        assert value < CLOSE
    assert checks.greedy_is_argmax
    assert [record.site for record in trace.sites] == [site.id for site in loaded.model.sites]
    for kind, encoder in (("self", "transformer"), ("tape", "lstmn")):
        assert any(record.kind == kind for record in trace.sites) == (encoder in f"{preset} {changes}")


@pytest.mark.parametrize("edit", ["mask-head@enc.words:head=0", "zero@enc.words:step=2,position=2"])
def test_sentences_stay_sentences_when_nothing_of_them_is_read(tmp_path: Path, edit: str) -> None:
    config = small_classifiers.small_preset("classify-sentences", classifier__pooling="max")
    loaded = small_classifiers.random_model_folder(tmp_path / "m", config)
    trace = trace_text(loaded, TraceRequest("soup dull soup was never dull today", "full", edits=(parse_edit(edit),)))
    checks = replay_trace(trace, tmp_path / "m").checks
    assert checks is not None
    for value in (checks.weights, checks.context, checks.features, checks.output):
        assert value is not None
        assert value < CLOSE


def test_a_site_cannot_go_through_itself(tmp_path: Path) -> None:
    trace = trace_text(
        small_classifiers.random_model_folder(tmp_path / "m", small_classifiers.small_preset("classify-sentences")),
        TraceRequest(LINE),
    )
    tree = trace.model_dump(by_alias=True)
    tree["sites"][1]["keys_from"] = "pool"
    with pytest.raises(ValueError, match="keys cannot come from pool"):
        Trace.model_validate(tree)


def test_one_wrong_number_is_seen(tmp_path: Path) -> None:
    loaded = small_classifiers.random_model_folder(tmp_path / "m", small_classifiers.small_preset("classify-final"))
    trace = trace_text(loaded, TraceRequest(LINE))
    for name, seen in (("pool/weights", "weights"), ("features", "output"), ("source", "scores")):
        array = trace.tensors[name].array().copy()
        array.flat[1] += 0.5
        packed = PackedTensor.pack(array, *trace.tensors[name].dims)
        bad = trace.model_copy(update={"tensors": {**trace.tensors, name: packed}})
        assert getattr(replay_trace(bad, tmp_path / "m").checks, seen) > 0.001, name


def test_a_tape_is_traced_word_by_word(tmp_path: Path) -> None:
    loaded = small_classifiers.random_model_folder(
        tmp_path / "m", small_classifiers.small_preset("classify-lstmn", encoder__layers=2)
    )
    trace = trace_text(loaded, TraceRequest(LINE, "full"))
    assert [record.site for record in trace.sites] == ["enc.tape.0", "enc.tape.1"]
    weights = trace.weights("enc.tape.1")[:, 0]
    assert not np.triu(weights).any(), "a word reads those before it"
    assert np.allclose(weights[1:-1].sum(axis=-1), 1)
    assert not weights[-1].any(), "the end is not read"
    array = trace.tensors["enc.tape.1/values"].array().copy()
    array.flat[1] += 0.5
    packed = PackedTensor.pack(array, *trace.tensors["enc.tape.1/values"].dims)
    bad = trace.model_copy(update={"tensors": {**trace.tensors, "enc.tape.1/values": packed}})
    checks = replay_trace(bad, tmp_path / "m").checks
    assert checks is not None
    assert (checks.scores or 0) > 0.001
    assert (checks.context or 0) > 0.001
    moved = trace_text(loaded, TraceRequest(LINE, "full", edits=[parse_edit("onehot@enc.tape.0:step=3,position=1")]))
    assert moved.weights("enc.tape.0")[3, 0].argmax() == 1
    assert moved.steps[0].logp != trace.steps[0].logp


def test_what_if_agrees_with_single_edits(tmp_path: Path) -> None:
    loaded = small_classifiers.random_model_folder(
        tmp_path / "m", small_classifiers.small_preset("classify-heads"), kind="bpe"
    )
    trace = trace_text(loaded, TraceRequest(LINE, with_counterfactuals=True))
    assert trace.counterfactuals
    for what in trace.counterfactuals[::7]:
        edit = parse_edit(f"{what.op}:position={what.position}")
        changed = trace_text(loaded, TraceRequest(LINE, edits=[edit], parent=trace))
        assert what.top[0].text == changed.steps[0].top[0].text
        assert what.top[0].logp == pytest.approx(changed.steps[0].top[0].logp, abs=1e-4)
        assert changed.checks is not None
        assert (changed.checks.weights or 0) < CLOSE, "edited rows are not compared"


def test_a_given_label_and_gold_words_are_recorded(tmp_path: Path) -> None:
    loaded = small_classifiers.random_model_folder(
        tmp_path / "m", small_classifiers.small_preset("classify-learned"), kind="bpe"
    )
    request = TraceRequest(LINE, target="neither good  nor bad", gold=Gold(sure=[(4, 0), (5, 0)]))
    trace = trace_text(loaded, request)
    assert trace.target.words == ["neither good nor bad"]
    assert trace.steps[0].forced
    moved = trace_text(loaded, TraceRequest(LINE, gold=request.gold, edits=[parse_edit("gold")]))
    assert moved.table(specials=False).weights[0, 4:6].sum() == pytest.approx(1)


def test_a_model_without_attention_has_no_weights_to_edit(tmp_path: Path) -> None:
    loaded = small_classifiers.random_model_folder(tmp_path / "m", small_classifiers.small_preset("classify-mean"))
    with pytest.raises(TraceError, match="no weights to change"):
        trace_text(loaded, TraceRequest(LINE, edits=[parse_edit("uniform")]))

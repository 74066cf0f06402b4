"""What if it had looked elsewhere: edits do what they say, and nothing before them changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import small_models
from heedful.cli.trace import compare_traces
from heedful.config import DecodingOptions
from heedful.errors import TraceError
from heedful.tasks.base import TraceRequest
from heedful.tasks.replay import replay_trace
from heedful.tasks.seq2seq.assets import LoadedSeq2Seq
from heedful.tasks.seq2seq.trace import trace_line
from heedful.trace.edits import parse_edit
from heedful.trace.schema import Gold, Trace

LINE = "the red cat sees a small dog"
HOW = DecodingOptions(max_length=8)


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedSeq2Seq:
    return small_models.random_model_folder(tmp_path / "model", small_models.small_preset("cgru"))


def edited(loaded: LoadedSeq2Seq, *texts: str, gold: Gold | None = None) -> tuple[Trace, Trace]:
    parent = trace_line(loaded, TraceRequest(LINE, "full", gold=gold), HOW)
    wanted = TraceRequest(LINE, "full", gold=gold, edits=[parse_edit(t) for t in texts], parent=parent)
    return parent, trace_line(loaded, wanted, HOW)


def test_all_weight_on_one_word(loaded: LoadedSeq2Seq) -> None:
    before, after = edited(loaded, "onehot:step=2,position=4")
    assert after.parent == before.id
    assert after.id != before.id
    assert after.weights()[2, 0].tolist() == [0, 0, 0, 0, 1, 0, 0, 0]
    assert np.allclose(after.weights()[:2], before.weights()[:2]), "what came before is as it was"
    assert [t.id for t in after.target.tokens[:2]] == [t.id for t in before.target.tokens[:2]]
    assert after.steps[2].logp != pytest.approx(before.steps[2].logp)
    checks = replay_trace(after, loaded.path).checks
    assert checks is not None
    assert max(checks.context or 1, checks.output or 1) < 1e-5, "an edited trace can be computed again too"


def test_a_weight_is_set_and_the_others_scaled(loaded: LoadedSeq2Seq) -> None:
    before, after = edited(loaded, "set:step=0,position=1,value=0.8")
    old, new = before.weights()[0, 0], after.weights()[0, 0]
    assert new[1] == pytest.approx(0.8)
    others = [i for i in range(len(old)) if i != 1]
    assert np.allclose(new[others], old[others] * 0.2 / old[others].sum(), atol=1e-6)


def test_a_word_is_not_read(loaded: LoadedSeq2Seq) -> None:
    _, after = edited(loaded, "zero:position=3")
    assert after.weights()[:, 0, 3].tolist() == [0] * len(after.steps)
    assert np.allclose(after.weights().sum(axis=-1), 1, atol=1e-6)


def test_uniform_and_permuted(loaded: LoadedSeq2Seq) -> None:
    _, uniform = edited(loaded, "uniform")
    assert np.allclose(uniform.weights(), 1 / 8)
    before, permuted = edited(loaded, "permute:step=0")
    assert np.allclose(np.sort(permuted.weights()[0]), np.sort(before.weights()[0]))
    assert not np.allclose(permuted.weights()[0], before.weights()[0])


def test_gold_where_it_is_known(loaded: LoadedSeq2Seq) -> None:
    _, after = edited(loaded, "gold", gold=Gold(sure=[(2, 1), (1, 1)]))
    assert after.weights()[1, 0].tolist() == [0, 0.5, 0.5, 0, 0, 0, 0, 0]
    with pytest.raises(TraceError, match="no gold alignment"):
        edited(loaded, "gold")


def test_a_head_is_masked(tmp_path: Path) -> None:
    loaded = small_models.random_model_folder(tmp_path / "t", small_models.small_preset("transformer"))
    _, after = edited(loaded, "mask-head@dec.2.cross:head=1")
    weights = after.weights("dec.2.cross")
    assert not weights[:, 1].any()
    assert weights[:, 0].any()


def test_the_source_and_the_beginning_can_be_changed(loaded: LoadedSeq2Seq) -> None:
    _, after = edited(loaded, "source:position=2,text=dog")
    assert after.source.words == ["the", "red", "dog", "sees", "a", "small", "dog"]
    _, erased = edited(loaded, "source:position=0")
    assert erased.source.words == LINE.split()[1:]
    _, forced = edited(loaded, "prefix:text=le chat")
    assert forced.target.words[:2] == ["le", "chat"]
    assert [step.forced for step in forced.steps[:3]] == [True, True, False]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("unifrom", 'unknown edit "unifrom"; did you mean "uniform"'),
        ("onehot", "onehot needs position"),
        ("set:position=1,value=2", "value must be between 0 and 1, got 2"),
        ("zero:position=x", 'position = "x" is not a number'),
        ("zero:place=1", 'edits have no key "place"; known: step'),
        ("zero:position", '"position" is not KEY=VALUE; keys: step'),
    ],
)
def test_a_mistake_in_an_edit_is_told(text: str, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        parse_edit(text)


def test_places_that_are_not_there(loaded: LoadedSeq2Seq) -> None:
    with pytest.raises(TraceError, match="position 9 is out of range; the source has positions 0 to 7"):
        edited(loaded, "onehot:position=9")
    with pytest.raises(TraceError, match="there is no word 7; the sentence has 0 to 6"):
        edited(loaded, "source:position=7")
    with pytest.raises(TraceError, match=r'"zero@cros": there is no such site; did you mean "cross"'):
        edited(loaded, "zero@cros:position=1")
    with pytest.raises(TraceError, match=r"step 99 is out of range; cross has steps 0 to \d"):
        edited(loaded, "zero:position=1,step=99")
    with pytest.raises(TraceError, match="head 1 is out of range; this site has heads 0 to 0"):
        edited(loaded, "mask-head:head=1")


def test_a_model_that_never_looks_has_nothing_to_change(tmp_path: Path) -> None:
    loaded = small_models.random_model_folder(tmp_path / "s", small_models.small_preset("seq2seq"))
    with pytest.raises(TraceError, match="has no attention over its input"):
        edited(loaded, "uniform")
    with pytest.raises(TraceError, match="has no attention over its input"):
        edited(loaded, "uniform@cross")


def test_compare_traces(loaded: LoadedSeq2Seq) -> None:
    before, after = edited(loaded, "onehot:step=1,position=0")
    text = compare_traces(before, after)
    assert text.splitlines()[0].split() == ["step", "before", "after"]
    assert f"before: {before.target.text}" in text


@pytest.mark.parametrize("preset", ["cgru", "luong", "transformer", "conv-conv", "abs"])
def test_the_lattice_is_what_single_edits_give(tmp_path: Path, preset: str) -> None:
    loaded = small_models.random_model_folder(tmp_path / "l", small_models.small_preset(preset))
    parent = trace_line(loaded, TraceRequest(LINE, "weights", with_counterfactuals=True), HOW)
    places = 7 if preset == "luong" else 8  # the end token may not be read
    assert len(parent.counterfactuals) == len(parent.steps) * places * 2
    for found in (parent.counterfactuals[3], parent.counterfactuals[places * 2 + places + 1]):
        edit = parse_edit(f"{found.op}:step={found.step},position={found.position}")
        after = trace_line(loaded, TraceRequest(LINE, "weights", edits=[edit], parent=parent), HOW)
        step = after.steps[found.step]
        assert [top.id for top in found.top[:3]] == [top.id for top in step.top[:3]]
        assert [t.logp for t in found.top[:3]] == pytest.approx([t.logp for t in step.top[:3]], abs=1e-4)
        assert 0 <= found.tvd <= 1

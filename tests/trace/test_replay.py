"""Traces of every mechanism and preset: checked from the file, replayed in plain loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import small_models
from heedful.config import DecodingOptions
from heedful.config.presets import ENCODER_DECODERS
from heedful.errors import TraceError
from heedful.tasks.base import TraceRequest
from heedful.tasks.replay import replay_trace
from heedful.tasks.seq2seq.trace import trace_line
from heedful.trace.check import check
from heedful.trace.schema import Gold, PackedTensor, Trace
from small_models import VARIANTS

LINE = "the red cat sees a small dog"
ALL: list[tuple[str, dict[str, Any]]] = [*((name, {}) for name in ENCODER_DECODERS), *VARIANTS]
ALL += [("bigru-gru", {"attention__score": score}) for score in ("dot", "concat", "prod-relu", "concat-relu")]
ALL += [("bigru-gru", {"attention__normalizer": name}) for name in ("smoothed-softmax", "sparsemax", "entmax15")]
every = pytest.mark.parametrize(("preset", "changes"), ALL, ids=str)
CLOSE = 1e-5


def traced(tmp_path: Path, preset: str, changes: dict[str, Any], **how: Any) -> tuple[Trace, Path]:
    loaded = small_models.random_model_folder(tmp_path / "model", small_models.small_preset(preset, **changes))
    decoding = DecodingOptions(max_length=8, **how)
    return trace_line(loaded, TraceRequest(LINE, "full"), decoding), tmp_path / "model"


@every
def test_it_all_follows_from_the_parameters(tmp_path: Path, preset: str, changes: dict[str, Any]) -> None:
    trace, folder = traced(tmp_path, preset, changes)
    trace.save(tmp_path / "t.json")
    assert Trace.load(tmp_path / "t.json") == trace, "it reads back exactly"
    assert trace.checks is not None
    checks = replay_trace(trace, folder).checks
    assert checks is not None
    if trace.sites:
        for value in (trace.checks.row_sum or 0, trace.checks.weights, trace.checks.context):
            assert value is not None
            assert value < CLOSE
        assert checks.scores is not None
        assert checks.scores < CLOSE
    assert checks.features is not None
    assert checks.output is not None
    assert max(checks.features, checks.output) < CLOSE
    assert checks.greedy_is_argmax


def test_one_wrong_number_is_seen(tmp_path: Path) -> None:
    trace, folder = traced(tmp_path, "bigru-gru", {})
    for name, seen in (("cross/weights", "weights"), ("context", "context"), ("state", "output")):
        array = trace.tensors[name].array().copy()
        array[(1, 0, 1)[: array.ndim] if array.ndim == 3 else (1, 1)] += 0.5
        bad = trace.model_copy(
            update={"tensors": {**trace.tensors, name: PackedTensor.pack(array, *trace.tensors[name].dims)}}
        )
        value = getattr(replay_trace(bad, folder).checks, seen)
        assert value > 0.001, name


def test_another_models_weights_are_refused(tmp_path: Path) -> None:
    trace, _ = traced(tmp_path, "bigru-gru", {})
    small_models.random_model_folder(tmp_path / "other", small_models.small_preset("bigru-gru"), seed=4)
    with pytest.raises(TraceError, match="its weights are not those the trace was recorded with"):
        replay_trace(trace, tmp_path / "other")


@pytest.mark.parametrize("how", [{"method": "beam", "beam": 3}, {"method": "sample", "seed": 5}])
def test_every_way_of_decoding_has_the_same_record(tmp_path: Path, how: dict[str, Any]) -> None:
    trace, folder = traced(tmp_path, "luong", {}, **how)
    checks = replay_trace(trace, folder).checks
    assert checks is not None
    assert checks.output is not None
    assert checks.output < CLOSE
    assert checks.greedy_is_argmax is None


def test_a_beam_keeps_its_tree(tmp_path: Path) -> None:
    trace, _ = traced(tmp_path, "cgru", {}, method="beam", beam=3)
    tree = trace.beam
    assert tree is not None
    assert tree.weights is not None
    weights = trace.array(tree.weights)
    assert len(weights) == len(tree.nodes)
    path = []
    at = tree.best[0]
    while at >= 0:
        path.append(at)
        at = tree.nodes[at].parent
    path.reverse()
    assert [tree.nodes[i].token for i in path] == [token.id for token in trace.target.tokens]
    assert np.allclose(weights[path], trace.weights(), atol=1e-5), "the best path looked where the trace says"
    assert tree.nodes[path[-1]].total_logp == pytest.approx(sum(step.logp for step in trace.steps), abs=1e-4)
    assert {node.state for node in tree.nodes} <= {"active", "pruned", "finished"}
    assert max(sum(n.step == t for n in tree.nodes) for t in range(8)) <= 3


def test_a_given_output_is_written(tmp_path: Path) -> None:
    loaded = small_models.random_model_folder(tmp_path / "model", small_models.small_preset("rnnsearch"), kind="bpe")
    wanted = TraceRequest(LINE, "steps", target="le chat voit un chien", gold=Gold(sure=[(2, 1)]))
    trace = trace_line(loaded, wanted, DecodingOptions())
    assert trace.target.words == ["le", "chat", "voit", "un", "chien"]
    assert all(step.forced for step in trace.steps)
    assert trace.decoding["method"] == "forced"
    table = trace.table(specials=False)
    assert (table.rows, table.columns) == (trace.target.words, LINE.split())
    assert table.gold == [(1, 2)]
    assert np.allclose(trace.table().weights.sum(axis=1), 1, atol=1e-5), "folding keeps the mass"


def test_a_trace_of_steps_is_small(tmp_path: Path) -> None:
    config = small_models.small_preset("bigru-gru", embedding=256, encoder__hidden=128, decoder__hidden=256)
    loaded = small_models.random_model_folder(tmp_path / "model", config)
    eleven = "the red cat sees a small dog and the black fish"
    wanted = TraceRequest(eleven, "steps", target="le chat noir voit un petit chien et le poisson rouge")
    trace = trace_line(loaded, wanted, DecodingOptions())
    assert (len(trace.source.tokens), len(trace.target.tokens)) == (12, 12)
    trace.save(tmp_path / "t.json")
    assert (tmp_path / "t.json").stat().st_size <= 100_000


def test_check_alone_needs_no_model(tmp_path: Path) -> None:
    trace, _ = traced(tmp_path, "transformer", {})
    found = check(trace)
    assert found.weights is not None
    assert found.weights < CLOSE
    assert found.scores is None

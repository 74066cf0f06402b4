"""Traces and model folders of every format version stay readable.

`tests/stored/1` was written by heedful 0.1. A new format adds a folder; existing ones never change.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from heedful.config import DecodingOptions
from heedful.tasks.model_folder import load_model
from heedful.tasks.replay import replay_trace
from heedful.tasks.seq2seq.predict import search_lines
from heedful.trace.check import check
from heedful.trace.schema import Trace

STORED = Path(__file__).parents[1] / "stored"
TRACES = sorted(path for path in STORED.glob("*/*.json"))
every_trace = pytest.mark.parametrize("path", TRACES, ids=lambda path: f"{path.parent.name}/{path.stem}")


@every_trace
def test_a_stored_trace_is_checked_and_replayed(path: Path) -> None:
    trace = Trace.load(path)
    checks = check(trace)
    assert max(checks.weights or 1, checks.context or 1) < 1e-5
    checks = replay_trace(trace, path.with_suffix("")).checks or checks
    assert max(checks.scores or 1, checks.features or 1, checks.output or 1) < 1e-5


@every_trace
def test_a_stored_model_generates_its_stored_output(path: Path) -> None:
    trace, loaded = Trace.load(path), load_model(path.with_suffix(""))
    options = DecodingOptions.model_validate(trace.decoding)
    (hypotheses,) = search_lines(loaded.model, [trace.source.text], loaded.assets, options)
    assert list(hypotheses[0].tokens) == [token.id for token in trace.target.tokens]


def test_every_format_has_stored_traces() -> None:
    formats = {path.parent.name for path in TRACES}
    assert {"1"} <= formats

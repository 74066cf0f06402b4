"""Traces and model folders of every format version that ever was: they are read for ever.

`tests/stored/1` was written by heedful 0.1. A new version adds a folder; none is ever changed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from heedful.config import DecodingConfig
from heedful.record import Trace
from heedful.tasks.folder import open_model
from heedful.tasks.text import answer
from heedful.tasks.tracing import replayed
from heedful.trace import check

STORED = Path(__file__).parents[1] / "stored"
EVERY = sorted(path for path in STORED.glob("*/*.json"))


@pytest.mark.parametrize("path", EVERY, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_it_is_read_checked_and_replayed(path: Path) -> None:
    trace = Trace.load(path)
    found = check(trace)
    assert max(found.softmax or 1, found.context or 1) < 1e-5
    checks = replayed(trace, path.with_suffix("")).checks
    assert checks is not None
    assert max(checks.score or 1, checks.output or 1) < 1e-5


@pytest.mark.parametrize("path", EVERY, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_its_model_still_writes_what_it_wrote(path: Path) -> None:
    trace, opened = Trace.load(path), open_model(path.with_suffix(""))
    how = DecodingConfig.model_validate(trace.decode)
    (best,) = answer(opened.model, [trace.source.text], opened.words, how)
    assert list(best[0].tokens) == [token.id for token in trace.target.tokens]


def test_there_are_some() -> None:
    assert len(EVERY) >= 2

"""What `import heedful` gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import heedful
import small
from heedful.errors import ConfigError, ModelError

LINE = "the red cat sees a small dog"


@pytest.fixture
def model(tmp_path: Path) -> heedful.Model:
    small.folder(tmp_path / "m", small.preset("cgru"))
    return heedful.load(tmp_path / "m")


def test_a_line_or_lines(model: heedful.Model) -> None:
    one = model(LINE, max_length=6)
    assert model([LINE, "", LINE], max_length=6) == [one, "", one]
    assert model(LINE, beam=1, max_length=6) == one
    assert repr(model) == "<heedful model m: translate>"


def test_a_trace_and_what_if(model: heedful.Model) -> None:
    seen = model.trace(LINE, max_length=6)
    assert isinstance(seen, heedful.Trace)
    other = model.trace(LINE, edits=["onehot:step=1,position=0"], max_length=6)
    assert other.parent == seen.id
    assert other.weights()[1, 0].tolist() == [1, 0, 0, 0, 0, 0, 0, 0]
    assert np.allclose(seen.weights()[0], other.weights()[0])
    assert model.trace(LINE, what_if=True, max_length=3).whatif


def test_mistakes_are_told(model: heedful.Model, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"beem: no such setting; did you mean \"beam\""):
        model(LINE, beem=3)
    with pytest.raises(ModelError, match="there is no such model folder"):
        heedful.load(tmp_path / "nowhere")
    with pytest.raises(AttributeError, match="has no attribute 'laod'"):
        heedful.laod  # noqa: B018


def test_importing_it_is_quick() -> None:
    code = "import heedful, sys; heedful.Trace; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

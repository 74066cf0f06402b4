"""What `import heedful` provides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import heedful
import small_models
from fresh_python import run_python
from heedful.errors import ConfigError, ModelError

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


def test_a_trace_can_be_edited(model: heedful.Model) -> None:
    trace = model.trace(LINE, max_length=6)
    assert isinstance(trace, heedful.Trace)
    edited = model.trace(LINE, edits=["onehot:step=1,position=0"], max_length=6)
    assert edited.parent == trace.id
    assert edited.weights()[1, 0].tolist() == [1, 0, 0, 0, 0, 0, 0, 0]
    assert np.allclose(trace.weights()[0], edited.weights()[0])
    assert model.trace(LINE, what_if=True, max_length=3).counterfactuals


def test_errors_suggest_names(model: heedful.Model, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"beem: no such setting; did you mean \"beam\""):
        model(LINE, beem=3)
    with pytest.raises(ModelError, match="nowhere: no such model folder"):
        heedful.load(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="was trained to translate, not to classify"):
        heedful.load(tmp_path / "m", task="classify")
    with pytest.raises(AttributeError, match="has no attribute 'laod'"):
        heedful.laod  # noqa: B018


def test_importing_the_package_does_not_import_torch() -> None:
    process = run_python("import heedful, sys; heedful.Trace; print('torch' in sys.modules)")
    assert process.stdout == "False\n", process.stderr

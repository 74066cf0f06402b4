"""What `import heedful` offers: names, version, documentation and short representations."""

from __future__ import annotations

import inspect
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest

import heedful
import small_models
from fresh_python import run_python


def test_the_package_lists_its_public_names_and_nothing_else() -> None:
    assert set(dir(heedful)) == {*heedful.__all__, "__version__", "__doc__"}
    for name in dir(heedful):
        assert getattr(heedful, name) is not None
    assert heedful.__version__ == version("heedful")
    with pytest.raises(AttributeError, match="has no attribute 'laod'"):
        heedful.laod  # noqa: B018


def test_every_public_name_is_documented() -> None:
    for name in heedful.__all__:
        assert inspect.getdoc(getattr(heedful, name)), name
        assert f"`{name}" in (heedful.__doc__ or ""), name
    for kind in (heedful.Model, heedful.Trace):
        for name, member in vars(kind).items():
            if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property | classmethod)):
                assert inspect.getdoc(member), f"{kind.__name__}.{name}"


def test_types_are_published() -> None:
    assert files("heedful").joinpath("py.typed").is_file()


@pytest.mark.parametrize("names", ["dir(heedful), heedful.__version__", "heedful.Trace, heedful.register"])
def test_looking_at_the_package_does_not_import_torch(names: str) -> None:
    process = run_python(f"import heedful, sys; {names}; print('torch' in sys.modules)")
    assert process.stdout == "False\n", process.stderr


def test_a_trace_prints_as_one_line() -> None:
    trace = small_models.small_trace()
    line = "<Trace of test: 'the black cat' -> 'le chat noir', 4 x 4 tokens, 1 attention site>"
    assert repr(trace) == str(trace) == line
    assert repr(trace.tensors["weights"]) == "PackedTensor(f4, T=4, H=1, S=4)"
    source = trace.source.model_copy(update={"text": "a\nlong text " * 100})
    assert len(repr(trace.model_copy(update={"source": source}))) < 200
    assert "\n" not in repr(trace.model_copy(update={"source": source}))


def test_traces_are_saved_and_loaded_by_plain_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trace = small_models.small_trace()
    trace.save("t.json.gz")
    assert heedful.Trace.load("t.json.gz") == trace

"""Counterfactuals agree with single edits; short inputs have them by default, and long ones are bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import small_classifiers
import small_models
from command_line import complaint, heedful
from heedful.config import DecodingOptions
from heedful.decoding import StopCondition
from heedful.errors import DecodingCancelledError
from heedful.tasks.base import MAX_DEFAULT_PAIRS, LoadedModel, TraceRequest
from heedful.tasks.language_model.trace import trace_text
from heedful.tasks.model_folder import load_model
from heedful.tasks.recommend.trace import trace_recommendation
from heedful.tasks.registry import get_task
from heedful.tasks.seq2seq.trace import trace_line
from heedful.trace.edits import parse_edit
from heedful.trace.schema import Trace
from small_language_models import RECIPE

LINE = "the black cat sees a dog"
TASTES = """
[task]
kind = "recommend"
[data.world]
name = "tastes"
train = 60
valid = 10
test = 10
[model]
preset = "nais-prod"
embedding = 4
[training]
epochs = 1
threads = 1
"""


def train(folder: Path, recipe: str, *overrides: str) -> Path:
    (folder / "r.toml").write_text(recipe)
    done = heedful("train", folder / "r.toml", *overrides, "training.epochs=1", "--out", folder / "m")
    assert done.returncode == 0, done.stderr
    return folder / "m"


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        (
            "model.language_model.zero_slot=true",
            "model.language_model.recency=true",
            "model.language_model.shortlist=20",
        ),
        ("model.language_model.kind=transformer", "model.language_model.layers=2"),
    ],
)
def test_what_if_of_a_language_model_agrees_with_single_edits(
    tmp_path: Path, overrides: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load_model(train(tmp_path, RECIPE, *overrides))
    trace = trace_text(loaded, TraceRequest(LINE, with_counterfactuals=None))
    n_words = len(trace.steps)
    with monkeypatch.context() as patched:
        patched.setattr("heedful.trace.counterfactuals.MAX_CELLS", 60)  # one or two edits at a time
        parts = trace_text(loaded, TraceRequest(LINE, with_counterfactuals=True)).counterfactuals
        with pytest.raises(DecodingCancelledError):
            trace_text(loaded, TraceRequest(LINE, with_counterfactuals=True, stop=stop_after(3)))
    assert [c.tvd for c in parts] == pytest.approx([c.tvd for c in trace.counterfactuals], abs=1e-5)
    assert ("output/logit" in trace.tensors) == ("shortlist" in str(overrides))
    keys = sum(range(n_words + 1)) if "kind=transformer" in str(overrides) else sum(range(n_words))
    assert len(trace.counterfactuals) == 2 * keys
    for what in trace.counterfactuals[::5]:
        edit = parse_edit(f"{what.op}:step={what.step},position={what.position}")
        edited = trace_text(loaded, TraceRequest(LINE, edits=[edit], parent=trace))
        assert what.top[0].logp == pytest.approx(edited.steps[what.step].top[0].logp, abs=1e-4)
        assert what.top[0].id == edited.steps[what.step].top[0].id


def test_what_if_of_a_recommender_agrees_with_single_edits(tmp_path: Path) -> None:
    loaded = load_model(train(tmp_path, TASTES))
    trace = trace_recommendation(loaded, TraceRequest("user:7", with_counterfactuals=True))
    assert len(trace.counterfactuals) == 2 * len(trace.source.tokens) * len(trace.steps)
    for what in trace.counterfactuals[::23]:
        edit = parse_edit(f"{what.op}:step={what.step},position={what.position}")
        edited = trace_recommendation(loaded, TraceRequest("user:7", edits=[edit], parent=trace))
        assert what.top[0].logp == pytest.approx(edited.steps[what.step].logp, abs=1e-4)


def test_a_long_output_has_no_counterfactuals_unless_asked(tmp_path: Path) -> None:
    loaded = small_models.random_model_folder(tmp_path, small_models.small_preset("bigru-gru"))
    target = "le chat " * 30

    def count(choice: bool | None) -> int:
        request = TraceRequest(LINE, target=target, with_counterfactuals=choice)
        return len(trace_line(loaded, request, DecodingOptions()).counterfactuals)

    assert count(None) == 0
    assert count(True) > MAX_DEFAULT_PAIRS


def stop_after(calls: int) -> StopCondition:
    """Return a condition that is met when it has been checked so many times."""
    remaining = iter(range(calls))
    return StopCondition(should_stop=lambda: next(remaining, None) is None)


def test_edits_in_small_batches_give_the_same_and_can_be_stopped_between_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 1,000 words and 100 output tokens, all edits at once took gigabytes, minutes and no notice of a time limit."""
    translator = small_models.random_model_folder(tmp_path / "t", small_models.small_preset("bigru-gru"))
    classifier = small_classifiers.random_model_folder(
        tmp_path / "c", small_classifiers.small_preset("classify-learned")
    )

    def trace(model: LoadedModel[Any, Any], **options: Any) -> Trace:
        target = "le chat" if model is translator else None
        request = TraceRequest("the soup was dull", target=target, with_counterfactuals=True, **options)
        return get_task(model.recipe.task.kind).trace(model, request, DecodingOptions())

    for model in (translator, classifier):
        expected = trace(model).counterfactuals
        with monkeypatch.context() as patched:
            patched.setattr("heedful.trace.counterfactuals.MAX_CELLS", 12)
            parts = trace(model).counterfactuals
            with pytest.raises(DecodingCancelledError, match=r"decoding was cancelled after \d of at most \d steps"):
                trace(model, stop=stop_after(3))
        assert [(c.op, c.step, c.position) for c in parts] == [(c.op, c.step, c.position) for c in expected]
        assert [c.tvd for c in parts] == pytest.approx([c.tvd for c in expected], abs=1e-5)


def test_too_many_counterfactuals_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    small_models.random_model_folder(folder, small_models.small_preset("bigru-gru"))
    options = ("--target", "le chat " * 30, "--what-if", "-o", tmp_path / "t.json", "-m", folder)
    error = complaint("trace", "the cat " * 200, *options)
    assert "--what-if: 401 input positions and 61 output tokens are 24,461 pairs, and at most 20,000" in error
    assert not (tmp_path / "t.json").exists()


def test_the_command_computes_counterfactuals_unless_told_not_to(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    small_models.random_model_folder(folder, small_models.small_preset("bigru-gru"))
    sizes = {}
    for name, options in {"default": (), "without": ("--no-what-if",)}.items():
        done = heedful("trace", LINE, "-m", folder, "--max-length", "5", *options, "-o", tmp_path / f"{name}.json")
        assert done.returncode == 0, done.stderr
        text = (tmp_path / f"{name}.json").read_text(encoding="utf-8")
        sizes[name] = len(text)
        assert ('"onehot"' in text) == (name == "default")
    assert sizes["default"] < sizes["without"] + 100_000

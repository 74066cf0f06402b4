"""Counterfactuals of language models and recommenders agree with single edits; short inputs have them by default."""

from __future__ import annotations

from pathlib import Path

import pytest

import small_models
from command_line import heedful
from heedful.config import DecodingOptions
from heedful.tasks.base import MAX_DEFAULT_PAIRS, TraceRequest
from heedful.tasks.language_model.trace import trace_text
from heedful.tasks.model_folder import load_model
from heedful.tasks.recommend.trace import trace_recommendation
from heedful.tasks.seq2seq.trace import trace_line
from heedful.trace.edits import parse_edit
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
def test_what_if_of_a_language_model_agrees_with_single_edits(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    loaded = load_model(train(tmp_path, RECIPE, *overrides))
    trace = trace_text(loaded, TraceRequest(LINE, with_counterfactuals=None))
    n_words = len(trace.steps)
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

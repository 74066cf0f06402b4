"""One page for all tasks: classifiers, language models and recommenders have Walk and What-if too."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import small_classifiers
from chromium import unavailable
from heedful.cli.show import show as show_command
from heedful.tasks.base import TraceRequest
from heedful.tasks.classify.trace import trace_text
from heedful.trace.schema import Trace
from viz.conftest import HERE, Opener
from viz.test_page import AXE

pytestmark = pytest.mark.browser
LINE = "the red soup was never dull today"
NARROW = {"width": 390, "height": 844}


def classifier_trace(folder: Path, preset: str = "classify-learned") -> Trace:
    loaded = small_classifiers.random_model_folder(folder, small_classifiers.small_preset(preset), kind="bpe")
    return trace_text(loaded, TraceRequest(LINE, with_counterfactuals=None))


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    """A trace of a classifier, a language model and a recommender."""
    return {
        "classify": classifier_trace(tmp_path_factory.mktemp("classifier")),
        "read": Trace.load(HERE / "reader.json"),
        "recommend": Trace.load(HERE / "recommender.json"),
    }


@pytest.mark.parametrize("task", ["classify", "read", "recommend"])
def test_every_task_is_walked_with_its_numbers(show: Opener, traces: dict[str, Trace], task: str) -> None:
    trace = traces[task]
    last = len(trace.steps) - 1
    shown = show(trace, f"#/walk?tick={5 * last + 4}")
    assert shown.page.get_attribute("#recomputed", "data-state") == "good"
    record = trace.site()
    assert record.scores is not None
    keep = [i for i, text in enumerate(shown.texts("[data-grid=weights] .cell")) if "masked" not in text]
    weights = trace.array(record.weights)[last, 0]
    np.testing.assert_allclose(shown.numbers("[data-grid=weights] .n[data-v]"), weights[keep], atol=1e-6)
    scores = trace.array(record.scores)[last, 0]
    np.testing.assert_allclose(shown.numbers("[data-grid=scores] .n[data-v]"), scores[keep], atol=1e-6)
    assert all(body.is_visible() for body in shown.page.locator(".lane .body").all())
    assert "more" in shown.texts("[data-stage=score] .rule-numbers")[0]
    shown_p = [math.exp(trace.steps[last].logp)]
    assert shown.numbers("[data-stage=word] .rule-numbers mn")[-1] == pytest.approx(shown_p[0], abs=1e-6)
    assert shown.errors == []


def test_a_classifier_is_shown_on_the_same_page(tmp_path: Path, traces: dict[str, Trace]) -> None:
    traces["classify"].save(tmp_path / "t.json")
    show_command(tmp_path / "t.json", tmp_path / "t.html")
    assert 'data-start="#/walk?' in (tmp_path / "t.html").read_text(encoding="utf-8")


def test_what_if_of_a_classifier_has_the_label_probabilities(show: Opener, traces: dict[str, Trace]) -> None:
    trace = traces["classify"]
    edit = next(one for one in trace.counterfactuals if one.op == "zero" and one.position == 2)
    shown = show(trace, "#/what-if?tick=0&op=zero&cell=0.2")
    assert shown.numbers("#tvd") == [pytest.approx(edit.tvd)]
    expected = [math.exp(label.logp) for label in edit.top]
    np.testing.assert_allclose(shown.numbers("[data-grid=after] .n"), expected, atol=1e-6)
    assert shown.texts("[data-grid=after] .label") == [label.text for label in edit.top]


def test_what_if_of_a_recommendation_is_about_its_item(show: Opener, traces: dict[str, Trace]) -> None:
    trace = traces["recommend"]
    edit = next(one for one in trace.counterfactuals if (one.op, one.step, one.position) == ("onehot", 1, 3))
    shown = show(trace, "#/what-if?tick=0&cell=1.3")
    assert shown.numbers("[data-grid=before] .n") == pytest.approx([math.exp(trace.steps[1].logp)], abs=1e-6)
    assert shown.numbers("[data-grid=after] .n") == pytest.approx([math.exp(edit.top[0].logp)], abs=1e-6)
    assert "would be" in shown.texts(".outcome")[0]


def test_the_probability_of_an_item_is_written_in_order(show: Opener, traces: dict[str, Trace]) -> None:
    shown = show(traces["recommend"], "#/walk?tick=4")
    score = shown.texts("[data-stage=combine] .rule-numbers mtr")[-1].removeprefix("=")
    lines = shown.texts("[data-stage=word] .rule-numbers mtr")
    sign, number = ("", score[1:]) if score.startswith("−") else ("−", score)
    assert lines[0] == f"p=11+exp({sign}{number})"  # a fraction: 1 above 1 + exp(-y)
    assert lines[1] == f"={math.exp(traces['recommend'].steps[0].logp):.3f}"
    assert float(score.replace("−", "-")) == pytest.approx(
        -math.log(math.exp(-traces["recommend"].steps[0].logp) - 1), abs=1e-3
    )


def test_a_language_model_is_walked_word_by_word(show: Opener, traces: dict[str, Trace]) -> None:
    trace = traces["read"]
    shown = show(trace, "#/walk?tick=14")
    assert shown.texts(".written") == [f"“{trace.target.tokens[2].text}”"]
    assert shown.texts(".texts dt") == ["Text"]
    assert "bits" in shown.texts("#narration")[0]
    assert shown.page.locator("[data-grid=weights] .masked").count() == len(trace.source.tokens) - 2


@pytest.mark.parametrize("task", ["classify", "read", "recommend"])
@pytest.mark.parametrize("view", ["walk", "what-if", "alignment"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_of_every_task_are_accessible_and_fit(
    show: Opener, traces: dict[str, Trace], task: str, view: str, scheme: str
) -> None:
    if not AXE.is_file():
        unavailable("axe-core is not there: npm ci in studio/")
    shown = show(traces[task], f"#/{view}", viewport=NARROW, color_scheme=scheme)
    assert shown.page.evaluate("() => document.documentElement.scrollWidth") == NARROW["width"]
    shown.page.evaluate(AXE.read_text(encoding="utf-8"))
    found = shown.page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
    assert shown.errors == []

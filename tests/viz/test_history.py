"""The History view in a browser: numbers are the trace's, and Walk speaks of items."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import small_models
from chromium import unavailable
from command_line import heedful
from heedful.config import ModelConfig
from heedful.config.presets import RECOMMENDERS
from heedful.models import Recommender
from heedful.trace.schema import ModelInfo, PackedTensor, Side, SiteRecord, Step, Token, Trace
from heedful.viz.base import TextStyle
from heedful.viz.figure import save_figure
from heedful.viz.history import HistoryItem, explain_items, history_bars, history_text
from viz.conftest import Opener
from viz.test_page import AXE

HISTORY = ["Heat", "Fargo", "Toy Story", "Alien", "Babe"]
ITEMS = ["Casino", "Antz"]


def recommendation_trace() -> Trace:
    torch.manual_seed(1)
    config = ModelConfig.model_validate({**RECOMMENDERS["nais-prod"], "preset": "nais-prod"})
    model = Recommender(config, 9).double()
    torch.nn.init.normal_(model.target_embedding.weight)
    torch.nn.init.normal_(model.history_embedding.weight)
    from heedful.attention import Detail, Hooks

    with torch.inference_mode():
        judged = model.score_items(torch.arange(5), torch.tensor([7, 8]), Hooks(Detail.FULL))
    look = judged.attentions["history"]
    assert look.weights is not None
    assert look.scores is not None
    effect = np.array([[0.3, -0.2, 0.1, np.nan, 0.0], [0.0, 0.5, np.nan, np.nan, 0.1]])
    tensors = {
        "source": PackedTensor.pack(judged.values.numpy(), "S", "d"),
        "weights": PackedTensor.pack(look.weights[0].numpy(), "T", "H", "S"),
        "scores": PackedTensor.pack(look.scores[0].numpy(), "T", "H", "S"),
        "query": PackedTensor.pack(judged.query.numpy(), "T", "d"),
        "context": PackedTensor.pack(judged.context[:, None].numpy(), "T", "H", "d"),
        "effect": PackedTensor.pack(effect, "T", "S"),
    }
    names = {name: name for name in ("weights", "scores", "query", "context")}
    return Trace(
        detail="steps",
        model=ModelInfo(name="taste", task="recommend", settings=config.model_dump()),
        decoding={"method": "ranking"},
        source=side(HISTORY),
        target=side(ITEMS),
        steps=[Step(logp=-math.log1p(math.exp(-score))) for score in judged.scores.tolist()],
        sites=[SiteRecord.from_site(model.sites[0], query_side="target", key_side="source", values="source", **names)],
        alignment_site="history",
        tensors=tensors,
        attributions={"leave-one-out": "effect"},
    ).with_id()


def side(names: list[str]) -> Side:
    return Side(text="; ".join(names), tokens=[Token(text=n, word=i) for i, n in enumerate(names)], words=names)


@pytest.mark.browser
def test_the_page_shows_the_items_of_a_history(show: Opener) -> None:
    trace = recommendation_trace()
    shown = show(trace, "#/history?tick=1")
    page = shown.page
    assert page.locator("nav a[aria-current=page]").inner_text() == "History"
    assert shown.texts('[data-grid="history"] .label') == ["Heat", "Fargo", "Toy Story", *by_weight(trace, 0)]
    numbers = shown.numbers('[data-grid="history"] .row:nth-child(2) [data-v]')
    assert numbers == pytest.approx([trace.matrix()[0, 1], -0.2], abs=1e-6)
    summary = page.locator("#history-summary").inner_text()
    assert "“Heat” has the largest effect: without it the score would be 0.300 lower" in summary
    assert "not computed" in page.locator('[data-grid="history"] [data-item="3"]').inner_text()
    page.locator('[data-grid="history"] .row', has_text="Fargo").click()
    assert "Effect of “Fargo”" in page.locator(".side-panel h3").inner_text()
    assert shown.texts('[data-grid="affected"] .label') == ["Antz", "Casino"]
    page.locator(".step-buttons button", has_text="Antz").click()
    assert page.locator("h2 .written").inner_text() == "“Antz”"
    page.keyboard.press("t")
    assert page.locator(".data-table tbody tr").count() == 5
    assert not shown.requests
    assert not shown.errors


def by_weight(trace: Trace, step: int) -> list[str]:
    """Return the items without an effect, largest weight first."""
    return [HISTORY[at] for at in sorted((3, 4), key=lambda at: -trace.matrix()[step, at])]


@pytest.mark.browser
def test_the_walk_of_a_recommendation_is_about_items(show: Opener) -> None:
    trace = recommendation_trace()
    shown = show(trace, "#/walk?tick=4")
    page = shown.page
    assert "Item 1 of 2" in page.locator(".word-heading").inner_text()
    assert page.locator("#recomputed").get_attribute("data-state") == "good"
    assert shown.texts(".lane h3") == ["1 Score", "2 Smoothed softmax", "3 Context", "4 Compare", "5 Item"]
    chance = math.exp(trace.steps[0].logp)
    assert shown.numbers('[data-grid="words"] .chosen [data-v]') == pytest.approx([chance], abs=1e-7)
    assert f"{chance:.3f}" in page.locator('[data-stage="word"] .rule-numbers').inner_text()
    assert "do not explain why it recommended an item" in page.locator(".caveat").inner_text()
    assert not shown.errors


@pytest.mark.browser
def test_axes_are_items_and_their_titles_fit(show: Opener) -> None:
    shown = show(recommendation_trace(), "#/alignment")
    headline = "Attention of each recommended item to the items of the history"
    assert shown.page.locator("main h2").inner_text() == headline
    assert shown.texts("svg.matrix .axis-title") == ["item of the history", "recommended item"]
    overflow = shown.page.evaluate(
        "() => [...document.querySelectorAll('.axis-title')].map((text) => {"
        " const [mine, all] = [text, text.ownerSVGElement].map((e) => e.getBoundingClientRect());"
        " return Math.max(all.left - mine.left, mine.right - all.right,"
        " all.top - mine.top, mine.bottom - all.bottom) })"
    )
    assert max(overflow) <= 0.5, "no title is cut off"


@pytest.mark.browser
def test_axe_finds_nothing_serious(show: Opener) -> None:
    if not AXE.is_file():
        unavailable("axe-core is not there: npm ci in studio/")
    page = show(recommendation_trace(), "#/history?tick=0&table=1").page
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []


@pytest.mark.browser
def test_odd_addresses_fall_back_to_what_the_trace_has(show: Opener) -> None:
    page = show(recommendation_trace())
    for link in (
        "#/history?position=99999",
        "#/history?tick=7777777&head=9",
        "#/photo?position=1",
        "#/%%%",
        "#/__proto__",
    ):
        page.go(link)
        assert page.texts("main h2"), link
    assert page.errors == []


def test_other_traces_have_no_history_view(show: Opener) -> None:
    assert "History" not in show(small_models.small_trace(), "#/history").page.locator("nav").inner_text()


def test_items_are_ordered_by_effect_else_by_weight() -> None:
    trace = recommendation_trace()
    first, second = explain_items(trace)
    assert (first.item, first.n_hidden) == ("Casino", 0)
    assert [item.name for item in first.history] == ["Heat", "Fargo", "Toy Story", "Alien", "Babe"]
    weights = dict(zip(HISTORY, trace.array("weights")[1, 0], strict=True))
    for item in second.history:
        assert item.weight == pytest.approx(weights[item.name])
    assert second.history[0].name == "Fargo"
    assert math.isnan(next(item.effect for item in second.history if item.name == "Alien"))
    assert explain_items(trace, n=2)[0].n_hidden == 3
    without_effects = explain_items(trace.model_copy(update={"attributions": {}}))[0]
    strengths = [abs(item.weight) for item in without_effects.history]
    assert strengths == sorted(strengths, reverse=True)


def test_the_terminal_shows_a_history(tmp_path: Path) -> None:
    recommendation_trace().save(tmp_path / "t.json")
    shown = heedful("show", tmp_path / "t.json")
    assert shown.returncode == 0
    head, *rows = shown.stdout.splitlines()
    assert head == "Casino"
    assert rows[0].split()[0] == "Heat"
    assert rows[0].endswith("+0.300")
    assert "Antz" in rows
    assert heedful("show", tmp_path / "t.json", "--view", "alignment").stdout != shown.stdout
    plain = history_text(recommendation_trace(), style=TextStyle(45, unicode=False)).plain
    assert plain.isascii()
    assert "#" in plain


def test_figures_show_a_history(tmp_path: Path) -> None:
    recommendation_trace().save(tmp_path / "t.json")
    bars = [HistoryItem("$a_$b$", 0.5, -0.1)]
    save_figure(lambda: history_bars(bars, "for $1", 0), ["$a_$b$", "for $1"], tmp_path / "u.svg")
    assert "$a_$b$" in (tmp_path / "u.svg").read_text()
    for name in ("t.png", "t.svg", "t.pdf"):
        assert heedful("show", tmp_path / "t.json", "-o", tmp_path / name).returncode == 0
        assert (tmp_path / name).stat().st_size > 1_000
    assert "Toy Story" in (tmp_path / "t.svg").read_text()

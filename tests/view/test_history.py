"""The History view in a browser: numbers are the trace's, and Walk speaks of items."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import small
from heedful.config import ModelConfig
from heedful.config.presets import RECOMMENDERS
from heedful.models import Recommender
from heedful.record import Model, Side, Step, Tensor, Token, Trace
from heedful.record.trace import site_looks
from heedful.view.history import Bar, bars_of, draw_history, history_text
from test_cli import heedful
from view.conftest import REQUIRED, Opener
from view.test_page import AXE

TAKEN = ["Heat", "Fargo", "Toy Story", "Alien", "Babe"]
FOUND = ["Casino", "Antz"]


def recommended() -> Trace:
    torch.manual_seed(1)
    config = ModelConfig.model_validate({**RECOMMENDERS["nais-prod"], "preset": "nais-prod"})
    model = Recommender(config, 9).double()
    torch.nn.init.normal_(model.target.weight)
    torch.nn.init.normal_(model.taken.weight)
    from heedful.attention import Detail, Watch

    with torch.inference_mode():
        judged = model.judge(torch.arange(5), torch.tensor([7, 8]), Watch(Detail.FULL))
    look = judged.looks["history"]
    assert look.weights is not None
    assert look.scores is not None
    effect = np.array([[0.3, -0.2, 0.1, np.nan, 0.0], [0.0, 0.5, np.nan, np.nan, 0.1]])
    tensors = {
        "source": Tensor.of(judged.values.numpy(), "S", "d"),
        "weight": Tensor.of(look.weights[0].numpy(), "T", "H", "S"),
        "score": Tensor.of(look.scores[0].numpy(), "T", "H", "S"),
        "query": Tensor.of(judged.query.numpy(), "T", "d"),
        "context": Tensor.of(judged.context[:, None].numpy(), "T", "H", "d"),
        "effect": Tensor.of(effect, "T", "S"),
    }
    names = {name: name for name in ("weight", "score", "query", "context")}
    return Trace(
        detail="steps",
        model=Model(name="taste", task="recommend", settings=config.model_dump()),
        decode={"method": "ranking"},
        source=side(TAKEN),
        target=side(FOUND),
        steps=[Step(logp=-math.log1p(math.exp(-score))) for score in judged.scores.tolist()],
        sites=[site_looks(model.sites[0], asks="target", reads="source", value="source", **names)],
        alignment="history",
        tensors=tensors,
        tests={"leave-one-out": "effect"},
    ).signed()


def side(names: list[str]) -> Side:
    return Side(
        text="; ".join(names), tokens=[Token(text=n, word=i) for i, n in enumerate(names)], words=names
    )


@pytest.mark.browser
def test_what_spoke_for_an_item(show: Opener) -> None:
    trace = recommended()
    shown = show(trace, "#/history?tick=1")
    page = shown.page
    assert page.locator("nav a[aria-current=page]").inner_text() == "History"
    assert shown.texts('[data-grid="history"] .label') == ["Heat", "Fargo", "Toy Story", *by_weight(trace, 0)]
    numbers = shown.numbers('[data-grid="history"] .row:nth-child(2) [data-v]')
    assert numbers == pytest.approx([trace.matrix()[0, 1], -0.2], abs=1e-6)
    assert "Without “Heat” the score would be 0.300 lower" in page.locator("#history-said").inner_text()
    assert "not tried" in page.locator('[data-grid="history"] [data-item="3"]').inner_text()
    page.locator('[data-grid="history"] .row', has_text="Fargo").click()
    assert "What “Fargo” spoke for" in page.locator(".answer h3").inner_text()
    assert shown.texts('[data-grid="spoken"] .label') == ["Antz", "Casino"]
    page.locator(".step-buttons button", has_text="Antz").click()
    assert page.locator("h2 .written").inner_text() == "“Antz”"
    page.keyboard.press("t")
    assert page.locator(".twin tbody tr").count() == 5
    assert not shown.asked
    assert not shown.complaints


def by_weight(trace: Trace, step: int) -> list[str]:
    """What was tried without effect, or not tried: the heavier first."""
    return [TAKEN[at] for at in sorted((3, 4), key=lambda at: -trace.matrix()[step, at])]


@pytest.mark.browser
def test_walk_speaks_of_items(show: Opener) -> None:
    trace = recommended()
    shown = show(trace, "#/walk?tick=4")
    page = shown.page
    assert "Item 1 of 2" in page.locator(".word-heading").inner_text()
    assert page.locator("#recomputed").get_attribute("data-state") == "good"
    assert shown.texts(".lane h3") == ["1 Score", "2 Smoothed softmax", "3 Context", "4 Compare", "5 Item"]
    chance = math.exp(trace.steps[0].logp)
    assert shown.numbers('[data-grid="words"] .chosen [data-v]') == pytest.approx([chance], abs=1e-7)
    assert f"{chance:.3f}" in page.locator('[data-stage="word"] .put-in').inner_text()
    assert "never why it chose an item" in page.locator(".honest").inner_text()
    assert not shown.complaints


@pytest.mark.browser
def test_axes_are_of_items_and_have_room_for_their_names(show: Opener) -> None:
    shown = show(recommended(), "#/alignment")
    said = "Each recommended item, and the items of the history it read from"
    assert shown.page.locator("main h2").inner_text() == said
    assert shown.texts("svg.matrix .axis-title") == ["item of the history", "recommended item"]
    beyond = shown.page.evaluate(
        "() => [...document.querySelectorAll('.axis-title')].map((text) => {"
        " const [mine, all] = [text, text.ownerSVGElement].map((e) => e.getBoundingClientRect());"
        " return Math.max(all.left - mine.left, mine.right - all.right,"
        " all.top - mine.top, mine.bottom - all.bottom) })"
    )
    assert max(beyond) <= 0.5, "none is cut off"


@pytest.mark.browser
def test_nothing_serious_is_found_by_axe(show: Opener) -> None:
    if not AXE.is_file():
        (pytest.fail if REQUIRED else pytest.skip)("axe-core is not there: npm ci in studio/")
    page = show(recommended(), "#/history?tick=0&table=1").page
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []


@pytest.mark.browser
def test_other_traces_have_no_such_view(show: Opener) -> None:
    assert "History" not in show(small.trace(), "#/history").page.locator("nav").inner_text()


def test_bars_are_the_traces_numbers_strongest_effect_first() -> None:
    trace = recommended()
    first, second = bars_of(trace)
    assert (first.item, first.left_out) == ("Casino", 0)
    assert [bar.name for bar in first.bars] == ["Heat", "Fargo", "Toy Story", "Alien", "Babe"]
    weights = dict(zip(TAKEN, trace.array("weight")[1, 0], strict=True))
    for bar in second.bars:
        assert bar.weight == pytest.approx(weights[bar.name])
    assert second.bars[0].name == "Fargo"
    assert math.isnan(next(bar.effect for bar in second.bars if bar.name == "Alien"))
    assert bars_of(trace, count=2)[0].left_out == 3
    untried = bars_of(trace.model_copy(update={"tests": {}}))[0]  # what was changed has no effects
    assert [abs(bar.weight) for bar in untried.bars] == sorted(
        (abs(b.weight) for b in untried.bars), reverse=True
    )


def test_a_recommendation_is_shown_as_a_history(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    recommended().save(file)
    done = heedful("show", file)
    assert done.returncode == 0
    head, *rows = done.stdout.splitlines()
    assert head == "Casino"
    assert rows[0].split()[0] == "Heat"
    assert rows[0].endswith("+0.300")
    assert "Antz" in rows
    plain = history_text(bars_of(recommended()), width=45, blocks=False).plain
    assert plain.isascii()
    assert "#" in plain
    draw_history([Bar("$a_$b$", 0.5, -0.1)], "for $1", 0, tmp_path / "u.svg")
    assert "$a_$b$" in (tmp_path / "u.svg").read_text()
    for name in ("t.png", "t.svg", "t.pdf"):
        assert heedful("show", file, "-o", tmp_path / name).returncode == 0
        assert (tmp_path / name).stat().st_size > 1_000
    assert "Toy Story" in (tmp_path / "t.svg").read_text()
    assert heedful("show", file, "--view", "alignment").stdout != done.stdout

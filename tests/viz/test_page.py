"""The page in a browser: its numbers are the trace's, and it makes no requests."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

import small_models
from chromium import unavailable
from heedful.trace.schema import Edit, Gold, PackedTensor, SiteRecord, Trace
from small_traces import subword_trace
from viz.conftest import Opener, OpenPage

pytestmark = pytest.mark.browser
AXE = Path(__file__).parent.parent.parent / "studio" / "node_modules" / "axe-core" / "axe.min.js"
LINKS = [
    "#/walk?tick=0&merge=1&specials=1",
    "#/walk?tick=7&merge=1&specials=1&position=3",
    "#/walk?tick=54&merge=1&specials=1&table=1&speed=4",
    "#/alignment?tick=12&merge=1&specials=0&figure=lines",
    "#/alignment?tick=3&merge=0&specials=1&numbers=0&table=1",
    "#/what-if?tick=3&merge=1&specials=1&op=zero&cell=2.1&table=1",
]


def with_error(trace: Trace, name: str, at: int, by: float) -> Trace:
    """Return the trace with one wrong number in one tensor."""
    old = trace.tensors[name]
    array = old.array().astype(np.float32).copy()
    array.flat[at] += by
    return trace.model_copy(update={"tensors": {**trace.tensors, name: PackedTensor.pack(array, *old.dims)}})


def matrix(shown: OpenPage, id: str = "alignment") -> np.ndarray:
    grid = f'[data-grid="{id}"]'
    rows, columns = (int(shown.page.get_attribute(grid, f"data-{name}") or 0) for name in ("rows", "columns"))
    return np.array(shown.numbers(f"{grid} [role=gridcell][data-r]")).reshape(rows, columns)


def test_the_page_works_from_a_file_and_makes_no_requests(show: Opener, world: Trace) -> None:
    shown = show(world)
    for link in LINKS:
        shown.load(link)
    shown.press("a", "i", "w", "Space", "ArrowRight")
    shown.page.wait_for_timeout(100)
    assert shown.requests == []
    assert shown.errors == []


def test_the_content_policy_forbids_requests(show: Opener, world: Trace) -> None:
    shown = show(world)
    shown.page.evaluate("() => { const image = new Image(); image.src = 'elsewhere.png'; document.body.append(image) }")
    shown.page.wait_for_timeout(100)
    assert "Content Security Policy" in shown.errors[0]
    assert shown.requests == []


@pytest.mark.parametrize("head", [None, 1])
@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("specials", [True, False])
def test_the_matrix_shows_the_weights_of_the_trace(show: Opener, words: bool, specials: bool, head: int | None) -> None:
    trace = subword_trace()
    chosen = "" if head is None else f"&head={head}"
    shown = show(trace, f"#/alignment?merge={int(words)}&specials={int(specials)}{chosen}")
    wanted = trace.table(head=head, words=words, specials=specials)
    np.testing.assert_allclose(matrix(shown), wanted.weights, atol=1e-6)
    np.testing.assert_allclose(shown.numbers(".matrix .sum text"), wanted.weights.sum(axis=1), atol=1e-6)
    assert shown.page.locator(".matrix .ring").count() == len(wanted.gold)
    labels = [text.replace("▁", "").lstrip("‑") for text in shown.texts(".matrix .row-label text")]
    assert labels == [row.replace("▁", "") for row in wanted.rows]


def test_the_walk_shows_the_numbers_of_the_trace(show: Opener, world: Trace) -> None:
    shown = show(world)
    scores, weights = world.array("cross/scores"), world.array("cross/weights")
    for t, step in enumerate(world.steps):
        shown.go(f"#/walk?tick={5 * t + 4}&merge=1&specials=1")
        np.testing.assert_allclose(shown.numbers("[data-grid=scores] .n"), scores[t, 0], atol=1e-6)
        np.testing.assert_allclose(shown.numbers("[data-grid=weights] .n"), weights[t, 0], atol=1e-6)
        likely = [math.exp(top.logp) for top in step.top]
        np.testing.assert_allclose(shown.numbers("[data-grid=words] .n"), likely, atol=1e-6)
        first = world.array("context")[t, :2]
        np.testing.assert_allclose(shown.numbers("[data-id=context] .numbers .n"), first, atol=1e-6)


def test_lines_start_at_one_percent_and_the_rest_is_noted(show: Opener, world: Trace) -> None:
    shown = show(world, "#/alignment")
    weights = world.table().weights
    assert shown.page.locator(".lines .link").count() == int((weights >= 0.01).sum())
    hidden = weights[weights < 0.01].sum() / weights.sum()
    assert f"together they make up {100 * hidden:.1f} % of the weight" in shown.texts(".scroll .legend")[0]


def test_shades_agree_with_numbers(show: Opener, world: Trace) -> None:
    weights = world.table().weights
    shown = show(world, "#/alignment")
    for link, most in [
        ("#/alignment?tick=0", 1),
        ("#/alignment?tick=0&scale=row", weights.max(axis=1)[:, None]),
    ]:
        shown.go(link)
        found = shown.page.eval_on_selector_all(".shade", "all => all.map(one => one.getAttribute('fill-opacity'))")
        shades = np.array([float(value) for value in found]).reshape(weights.shape)
        np.testing.assert_allclose(shades, weights / most, atol=1e-4)
        np.testing.assert_allclose(matrix(shown), weights, atol=1e-6)


def test_a_notebook_shows_the_page_in_a_frame(browser: Browser, world: Trace) -> None:
    page = browser.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_content(f"<p>a notebook</p>{world._repr_html_()}")
    frame = page.frame_locator("iframe")
    frame.locator("#recomputed[data-state=good]").wait_for()
    frame.locator("#next").click()
    assert frame.locator("#scrub").input_value() == "5"
    frame.get_by_role("link", name="Alignment").click()
    assert frame.locator(".matrix .box").count() == world.table().weights.size
    assert errors == []
    page.close()


def test_the_first_view_is_the_end_of_the_first_word(show: Opener, world: Trace) -> None:
    shown = show(world)
    bodies = shown.page.locator(".lane .body")
    assert bodies.count() == 5
    assert all(body.is_visible() for body in bodies.all())
    assert shown.page.locator(".lane.ahead").count() == 0
    assert shown.page.locator(".lane.current").get_attribute("data-stage") == "word"
    shown.press("Space")
    shown.page.wait_for_function(
        "() => document.querySelector('#scrub').value === '0'"
    )  # the first word from its start


def test_folded_lanes_of_a_narrow_screen_say_their_result(show: Opener, world: Trace) -> None:
    shown = show(world, viewport={"width": 390, "height": 844})
    briefs = [brief for brief in shown.page.locator(".brief").all() if brief.is_visible()]
    assert len(briefs) == 4
    assert "has the highest" in briefs[0].inner_text()
    assert "gets " in briefs[1].inner_text()


def test_nothing_of_a_long_text_is_cut_on_a_narrow_screen(show: Opener) -> None:
    many = [f"word{n}" for n in range(80)]
    shown = show(Trace.from_weights(many, ["a"], np.full((1, 80), 1 / 80)))
    shown.load("#/walk?tick=1&merge=1&specials=1")
    shown.page.set_viewport_size({"width": 390, "height": 900})
    elements = "[...document.querySelectorAll('.texts dd, .list')]"
    cut = f"() => {elements}.filter(one => one.scrollHeight > one.clientHeight + 4).length"
    assert shown.page.evaluate(cut) == 0
    assert shown.page.locator(".lane.current .list").first.is_visible()
    text = shown.page.locator(".texts dd").first
    assert "word79" not in text.inner_text()
    assert text.inner_text().endswith("more")
    shown.page.keyboard.press("Tab")
    shown.page.keyboard.press("Tab")  # after the link to the figure
    shown.page.keyboard.press("Enter")
    assert "word79" in text.inner_text()
    assert "less" in text.inner_text()
    shown.press("a", "w")
    assert "word79" in text.inner_text(), "stays unfolded in other views"
    assert shown.page.evaluate(cut) == 0


def test_long_labels_wrap_on_a_narrow_screen(show: Opener) -> None:
    names = [f"a title that is much longer than its column {n}" for n in range(3)]
    shown = show(
        Trace.from_weights(names, ["a"], np.full((1, 3), 1 / 3)),
        "#/walk?tick=1",
        viewport={"width": 390, "height": 844},
    )
    cut = (
        "() => [...document.querySelectorAll('.lane.current .label')].filter(one => one.scrollWidth > one.clientWidth)"
    )
    assert shown.page.locator(".lane.current .label").count() == 3
    assert shown.page.evaluate(f"{cut}.length") == 0


def test_recomputed_numbers_agree(show: Opener, world: Trace) -> None:
    shown = show(world)
    assert shown.page.get_attribute("#recomputed", "data-state") == "good"
    assert max(shown.numbers("#recomputed b")) < 1e-6
    text = shown.texts("#recomputed")[0]
    assert text.startswith("✓ Every weight, context and sum of weights on this page was recomputed here")
    assert "matches. Largest difference" in text
    below = "() => document.querySelector('main').compareDocumentPosition(document.querySelector('#recomputed'))"
    assert shown.page.evaluate(below) == 4, "after what a reader wants to know"
    assert shown.page.locator("#warning").count() == 0


@pytest.mark.parametrize(
    ("name", "by"), [("cross/weights", 0.01), ("cross/scores", 0.5), ("context", 0.01), ("source", 0.5)]
)
def test_one_wrong_number_turns_the_badge_red(show: Opener, world: Trace, name: str, by: float) -> None:
    at = world.tensors[name].shape[-1] * 2 + 1 if name != "source" else 1
    shown = show(with_error(world, name, at, by), "#/walk?tick=14&merge=1&specials=1")
    assert shown.page.get_attribute("#recomputed", "data-state") == "bad"
    assert "does not agree" in shown.texts("#recomputed")[0]
    assert "do not agree" in shown.texts("header #warning")[0]
    if name != "source":
        assert shown.page.locator(".lane .badge.bad").count() >= 1


def test_edited_weights_are_marked_and_not_compared_with_their_scores(show: Opener, world: Trace) -> None:
    moved = with_error(with_error(world, "cross/weights", 0, -0.25), "cross/weights", 2, 0.25)
    contexts = moved.array("context").copy()
    contexts[0] = moved.weights()[0, 0] @ moved.array("source")
    tensors = {**moved.tensors, "context": PackedTensor.pack(contexts.astype(np.float32), "T", "d")}
    moved = moved.model_copy(update={"tensors": tensors})
    assert show(moved).page.get_attribute("#recomputed", "data-state") == "bad"
    edits = [Edit(op="set", step=0, position=2, value=0.42)]
    shown = show(moved.model_copy(update={"edits": edits}))
    assert shown.page.get_attribute("#recomputed", "data-state") == "good"
    assert "Edited at this step" in shown.texts(".lane .footer")[1]
    shown.go("#/alignment?tick=0&merge=1&specials=1")
    marked = [text for text in shown.texts(".matrix .row-label text") if "✎" in text]
    assert marked == ["✎ le"]


def test_a_jump_shows_the_same_as_single_steps(show: Opener, world: Trace) -> None:
    """What is shown does not depend on what was shown before."""
    ticks = list(range(5 * len(world.steps)))
    jumping = show(world, "#/alignment?tick=9")
    jumped = {}
    for tick in random.Random(1).sample(ticks, len(ticks)):
        jumping.go(f"#/walk?tick={tick}&merge=1&specials=1")
        jumped[tick] = jumping.dom()
    stepping = show(world, "#/walk?tick=0&merge=1&specials=1")
    for tick in ticks:
        assert stepping.dom() == jumped[tick], tick
        assert stepping.page.input_value("#scrub") == str(tick)
        stepping.press("ArrowRight")


@pytest.mark.parametrize("link", LINKS)
def test_a_reloaded_link_shows_the_same(show: Opener, world: Trace, link: str) -> None:
    shown = show(world)
    shown.go(link)
    before = shown.dom()
    shown.page.reload()
    shown.wait_until_recomputed()
    assert shown.page.evaluate("() => location.hash") == link
    assert shown.dom() == before


@pytest.mark.parametrize(
    ("view", "clicks"),
    [
        ("walk", ["#next", "#next", '[data-grid="scores"] [data-r="4"]', "#word-next"]),
        ("alignment", ["#specials", "#numbers", "#scale", "#table"]),
        ("what-if", ["#op-zero", '.matrix [data-r="3"][data-c="2"]', "#table"]),
    ],
)
def test_clicks_are_in_the_link(show: Opener, world: Trace, view: str, clicks: list[str]) -> None:
    shown = show(world, f"#/{view}?tick=5")
    for selector in clicks:
        before = shown.page.evaluate("() => location.hash")
        shown.page.click(selector)
        assert shown.page.evaluate("() => location.hash") != before
    before = shown.page.locator("main").inner_text()
    shown.page.reload()
    shown.wait_until_recomputed()
    assert shown.page.locator("main").inner_text() == before


def test_everything_can_be_done_with_the_keyboard(show: Opener, world: Trace) -> None:
    shown = show(world, "#/walk?tick=0&merge=1&specials=1")
    page = shown.page

    def hash_has(part: str) -> None:
        assert part in page.evaluate("() => location.hash"), page.evaluate("() => location.hash")

    for keys, part in [
        (["ArrowRight", "ArrowRight", "ArrowLeft"], "tick=1&"),
        (["Shift+ArrowRight"], "tick=6&"),
        (["Shift+ArrowLeft"], "tick=1&"),
        (["4"], "tick=3&"),
        (["End"], "tick=54&"),
        (["Home"], "tick=0&"),
        (["+"], "speed=2"),
        (["+", "-", "-"], "merge=1&specials=1"),
    ]:
        shown.press(*keys)
        hash_has(part)
    shown.press("Space")
    page.wait_for_function("() => location.hash.includes('tick=1&')")
    assert page.get_attribute("#play", "aria-label") == "Pause"
    shown.press("Space")
    assert page.get_attribute("#play", "aria-label") == "Play"
    assert "“le”" in shown.texts("#narration")[0] or "“the”" in shown.texts("#narration")[0]

    shown.press("a")
    _tab_to(shown, '[data-grid="alignment"]')
    shown.press("ArrowRight", "ArrowDown", "ArrowDown")
    label = page.evaluate("() => document.activeElement.getAttribute('aria-label')")
    assert label == "output word noir, input word black: weight 0.96"
    assert page.locator('[data-grid="alignment"] [tabindex="0"]').count() == 1
    shown.press("n")
    assert page.locator(".matrix .box text").count() == 0
    shown.press("m")
    hash_has("figure=matrix")
    shown.press("m")
    assert page.locator(".matrix").count() == 0
    shown.press("t")
    assert page.locator("table caption").count() == 1
    shown.press("i")
    _tab_to(shown, '[data-grid="what-if"]')
    shown.press("ArrowDown", "ArrowRight", "ArrowRight", "Enter")
    hash_has("cell=1.2")
    shown.press("?")
    assert page.evaluate("() => document.querySelector('#help').open")
    shown.press("Escape")
    assert not page.evaluate("() => document.querySelector('#help').open")


def _tab_to(shown: OpenPage, where: str) -> None:
    for _ in range(60):
        shown.press("Tab")
        if shown.page.evaluate("where => document.activeElement.closest(where) !== null", where):
            return
    pytest.fail(f"Tab never reaches {where}")


def test_each_tick_is_narrated(show: Opener, world: Trace) -> None:
    shown = show(world, "#/walk?tick=10&merge=1&specials=1")
    assert shown.page.get_attribute("#narration", "aria-live") == "polite"
    sentences = []
    for _ in range(5):
        sentences += shown.texts("#narration")
        shown.press("ArrowRight")
    assert "“black” has the highest" in sentences[0]
    assert "“black” gets 96 %" in sentences[1]
    assert "context" in sentences[2]
    assert "“noir” is generated: the most likely word" in sentences[4]
    assert len(set(sentences)) == 5


def test_hovering_a_number_highlights_what_it_was_computed_from(show: Opener, world: Trace) -> None:
    shown = show(world, "#/walk?tick=14&merge=1&specials=1")
    shown.page.hover('[data-id="e1"] .n')
    highlighted = shown.page.eval_on_selector_all("[data-highlighted]", "all => all.map(one => one.dataset.id)")
    assert set(highlighted) == {"e1", "q", "k1"}
    shown.go("#/alignment?tick=14&merge=1&specials=1")
    shown.page.hover('.matrix [data-r="2"][data-c="1"]')
    assert shown.page.locator('.link[data-highlighted][data-row="2"][data-col="1"]').count() == 1
    assert shown.page.locator(".link[data-highlighted]").count() == 1


def test_counterfactuals_are_compared_with_the_original(show: Opener, world: Trace) -> None:
    shown = show(world, "#/what-if?tick=0&op=zero&cell=1.2")
    edited = next(w for w in world.counterfactuals if (w.op, w.step, w.position) == ("zero", 1, 2))
    assert shown.numbers("#tvd") == [edited.tvd]
    np.testing.assert_allclose(
        shown.numbers("[data-grid=after] .n"), [math.exp(top.logp) for top in edited.top], atol=1e-6
    )
    before = world.steps[1].top[: len(edited.top)]
    np.testing.assert_allclose(
        shown.numbers("[data-grid=before] .n"), [math.exp(top.logp) for top in before], atol=1e-6
    )
    wanted = {(w.step, w.position): w.tvd for w in world.counterfactuals if w.op == "zero"}
    found = matrix(shown, "what-if")
    assert all(found[at] == tvd for at, tvd in wanted.items())
    shown.page.click('.matrix [data-r="3"][data-c="0"]')
    assert "cell=3.0" in shown.page.evaluate("() => location.hash")
    without = show(world.model_copy(update={"counterfactuals": []}), "#/what-if")
    assert "heedful trace --what-if" in without.texts("main")[0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(show: Opener, world: Trace, scheme: str) -> None:
    if not AXE.exists():
        unavailable("axe-core is not there: npm ci in studio/")
    with_gold = world.model_copy(update={"gold": Gold(sure=[(0, 0), (1, 2), (2, 1)])})
    shown = show(with_gold, color_scheme=scheme)
    shown.page.evaluate(AXE.read_text(encoding="utf-8"))
    for link in [*LINKS, "#/alignment?tick=3&merge=1&specials=1", "#/what-if?tick=3"]:
        shown.go(link)
        report = shown.page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
        bad = [
            (v["id"], v["nodes"][0]["html"][:200])
            for v in report["violations"]
            if v["impact"] in ("serious", "critical")
        ]
        assert bad == [], link


TOKENS = [
    "</script>",
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    "&amp;",
    "猫が好き",
    "القط الأسود",
    "🧿",
    "a\\b\"c'",
    "\u2028",
]


def test_tokens_of_any_kind_stay_text(show: Opener) -> None:
    trace = Trace.from_weights(TOKENS, TOKENS, np.eye(len(TOKENS)), model="</script><script>alert(2)</script>")
    shown = show(trace, "#/alignment?table=1")
    assert shown.texts(".matrix .row-label text") == [word if len(word) < 20 else word[:19] + "…" for word in TOKENS]
    assert shown.texts(".data-table tbody th") == TOKENS
    shown.go("#/walk?tick=4")
    assert shown.texts("[data-grid=weights] .label") == TOKENS
    assert "</script>" in shown.texts(".facts")[0]
    assert shown.page.locator("img").count() == 0
    assert shown.errors == []


def matrix_trace(size: int) -> Trace:
    weights = np.random.default_rng(2).dirichlet(np.full(size, 0.05), (size, 8)).astype(np.float32)
    words = [f"word{i}" for i in range(size)]
    return Trace.from_weights(words, words, weights)


def load_seconds(shown: OpenPage, loads: int = 3) -> float:
    """Return the smallest processor time of several loads; other processes do not count."""
    session = shown.page.context.new_cdp_session(shown.page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    seconds: list[float] = []
    for _ in range(loads):
        shown.page.reload()
        shown.wait_until_recomputed()
        metrics = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
        seconds.append(metrics["TaskDuration"])
    return min(seconds)


def test_a_large_matrix_is_painted_and_has_its_table(show: Opener) -> None:
    trace = matrix_trace(128)
    shown = show(trace, "#/alignment")
    assert shown.page.locator("svg.matrix").count() == 0
    assert shown.page.locator(".canvas-matrix *").count() < 10, "no element per cell"
    n_colors = shown.page.evaluate(
        "() => { const canvas = document.querySelector('canvas');"
        " const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
        " return new Set(data).size }"
    )
    assert n_colors > 20
    table = np.array(shown.numbers(".data-table td")).reshape(128, -1)[:, :128]
    np.testing.assert_allclose(table, trace.table().weights, atol=1e-6)
    shown.page.focus("canvas")
    shown.press("ArrowRight", "ArrowDown")
    assert "output word word1, input word word1" in shown.texts(".cell-label")[0]


def test_a_painted_matrix_is_cheaper_per_cell_than_one_of_elements(show: Opener) -> None:
    """128 by 128 cells are painted, 64 by 64 are elements; both have their tables."""
    painted = load_seconds(show(matrix_trace(128), "#/alignment?table=1"))
    elements = load_seconds(show(matrix_trace(64), "#/alignment?table=1"))
    assert 0 < painted < 4 * elements


def test_reduced_motion_disables_transitions(show: Opener, world: Trace) -> None:
    def duration(shown: OpenPage) -> str:
        found: str = shown.page.evaluate("() => getComputedStyle(document.querySelector('.bar')).transitionDuration")
        return found

    reduced, animated = show(world, reduced_motion="reduce"), show(world)
    assert duration(reduced) == "0s"
    assert duration(animated) != "0s"
    animated.page.wait_for_timeout(1600)
    assert animated.page.input_value("#scrub") == "4"  # it does not start by itself


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_larger_weights_have_more_contrast(show: Opener, world: Trace, scheme: str) -> None:
    shown = show(world, color_scheme=scheme)
    page, cell, more = (
        shown.page.evaluate(
            "name => { const pen = document.createElement('canvas').getContext('2d');"
            " pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);"
            " pen.fillRect(0, 0, 1, 1); return Array.from(pen.getImageData(0, 0, 1, 1).data).slice(0, 3) }",
            name,
        )
        for name in ("--page", "--cell", "--more")
    )
    light = [0.2126, 0.7152, 0.0722] @ np.array([page, cell, more]).T
    assert abs(light[2] - light[0]) > 100
    assert abs(light[2] - light[0]) > abs(light[1] - light[0])


@pytest.mark.parametrize("wide", [1280, 400])
@pytest.mark.parametrize("link", LINKS)
def test_the_page_fits_the_window(show: Opener, world: Trace, wide: int, link: str) -> None:
    shown = show(world, link, viewport={"width": wide, "height": 800})
    assert shown.page.evaluate("() => document.documentElement.scrollWidth") == wide


def test_a_model_without_attention_still_shows_its_words(show: Opener, world: Trace) -> None:
    trace = world.model_copy(update={"sites": [], "alignment_site": None, "counterfactuals": [], "intermediates": {}})
    shown = show(trace, "#/walk?tick=2")
    assert "has no attention" in shown.texts("main")[0]
    assert shown.page.get_attribute("#scrub", "max") == str(len(trace.steps) - 1)
    likely = [math.exp(top.logp) for top in trace.steps[2].top]
    np.testing.assert_allclose(shown.numbers("[data-grid=words] .n"), likely, atol=1e-6)
    for link in ("#/alignment", "#/what-if"):
        shown.go(link)
        assert "has no attention" in shown.texts("main")[0]
    assert shown.errors == []


def test_a_trace_of_weights_says_how_to_record_more(show: Opener) -> None:
    shown = show(small_models.small_trace(), "#/walk?tick=4")
    assert "--detail steps" in shown.texts("main")[0]
    assert shown.page.get_attribute("#recomputed", "data-state") == "good"  # rows that sum to 1
    assert shown.errors == []


def test_sites_and_heads_can_be_chosen(show: Opener) -> None:
    trace = subword_trace()
    more = trace.tensors["weights"].array()[:, :, ::-1].copy()
    other = SiteRecord(site="dec.0.cross", kind="cross", heads=2, mass="one", weights="other")
    trace = trace.model_copy(
        update={
            "sites": [*trace.sites, other],
            "tensors": {**trace.tensors, "other": PackedTensor.pack(more, "T", "H", "S")},
        }
    )
    shown = show(trace, "#/alignment")
    shown.page.select_option("#site", "dec.0.cross")
    shown.page.select_option("#head", "1")
    assert "site=dec.0.cross&head=1" in shown.page.evaluate("() => location.hash")
    np.testing.assert_allclose(matrix(shown), trace.table("dec.0.cross", 1).weights, atol=1e-6)

"""The page as a browser shows it: its numbers are the trace's, and it asks nobody for anything."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

import small
from heedful.record import Edit, Gold, Looks, Side, Tensor, Token, Trace
from view.conftest import REQUIRED, Opener, Shown

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


def pieces() -> Trace:
    """Words of several pieces, two heads, a gold link."""
    source = Side(
        text="unread park.",
        words=["unread", "park."],
        tokens=[
            Token(text="▁un", word=0),
            Token(text="read", word=0),
            Token(text="▁park", word=1),
            Token(text=".", word=1),
            Token(text="</s>", role="end"),
        ],
    )
    target = Side(
        text="Park ja",
        words=["Park", "ja"],
        tokens=[
            Token(text="▁Pa", word=0),
            Token(text="rk", word=0),
            Token(text="▁ja", word=1),
            Token(text="</s>", role="end"),
        ],
    )
    weights = np.random.default_rng(1).dirichlet(np.ones(5), (4, 2)).astype(np.float32)
    made = Trace.from_weights(["a"] * 5, ["b"] * 4, weights, gold=Gold(sure=[(1, 0)]))
    return made.model_copy(update={"source": source, "target": target})


def changed(trace: Trace, name: str, at: int, by: float) -> Trace:
    """The trace with one number of one array wrong."""
    old = trace.tensors[name]
    array = old.array().astype(np.float32).copy()
    array.flat[at] += by
    return trace.model_copy(update={"tensors": {**trace.tensors, name: Tensor.of(array, *old.dims)}})


def matrix(shown: Shown, id: str = "alignment") -> np.ndarray:
    grid = f'[data-grid="{id}"]'
    rows, columns = (int(shown.page.get_attribute(grid, f"data-{name}") or 0) for name in ("rows", "columns"))
    return np.array(shown.numbers(f"{grid} [role=gridcell][data-r]")).reshape(rows, columns)


def test_it_works_from_a_file_and_asks_nobody_for_anything(show: Opener, world: Trace) -> None:
    shown = show(world)
    for link in LINKS:
        shown.load(link)
    shown.press("a", "i", "w", "Space", "ArrowRight")
    shown.page.wait_for_timeout(100)
    assert shown.asked == []
    assert shown.complaints == []


def test_a_request_would_be_seen(show: Opener, world: Trace) -> None:
    """The policy forbids it, and the page would complain."""
    shown = show(world)
    shown.page.evaluate(
        "() => { const image = new Image(); image.src = 'elsewhere.png'; document.body.append(image) }"
    )
    shown.page.wait_for_timeout(100)
    assert "Content Security Policy" in shown.complaints[0]
    assert shown.asked == []


@pytest.mark.parametrize("head", [None, 1])
@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("specials", [True, False])
def test_the_matrix_has_the_traces_numbers(
    show: Opener, words: bool, specials: bool, head: int | None
) -> None:
    trace = pieces()
    chosen = "" if head is None else f"&head={head}"
    shown = show(trace, f"#/alignment?merge={int(words)}&specials={int(specials)}{chosen}")
    wanted = trace.table(head=head, words=words, specials=specials)
    np.testing.assert_allclose(matrix(shown), wanted.weights, atol=1e-6)
    np.testing.assert_allclose(shown.numbers(".matrix .sum text"), wanted.weights.sum(axis=1), atol=1e-6)
    assert shown.page.locator(".matrix .ring").count() == len(wanted.gold)
    labels = [text.replace("▁", "").lstrip("‑") for text in shown.texts(".matrix .row-label text")]
    assert labels == [row.replace("▁", "") for row in wanted.rows]


def test_the_walk_has_the_traces_numbers(show: Opener, world: Trace) -> None:
    shown = show(world)
    scores, weights = world.array("cross/score"), world.array("cross/weight")
    for t, step in enumerate(world.steps):
        shown.go(f"#/walk?tick={5 * t + 4}&merge=1&specials=1")
        np.testing.assert_allclose(shown.numbers("[data-grid=scores] .n"), scores[t, 0], atol=1e-6)
        np.testing.assert_allclose(shown.numbers("[data-grid=weights] .n"), weights[t, 0], atol=1e-6)
        likely = [math.exp(top.logp) for top in step.top]
        np.testing.assert_allclose(shown.numbers("[data-grid=words] .n"), likely, atol=1e-6)
        first = world.array("context")[t, :2]
        np.testing.assert_allclose(shown.numbers("[data-id=context] .numbers .n"), first, atol=1e-6)


def test_lines_are_drawn_from_one_percent_and_the_rest_is_said(show: Opener, world: Trace) -> None:
    shown = show(world, "#/alignment")
    weights = world.table().weights
    assert shown.page.locator(".lines .link").count() == int((weights >= 0.01).sum())
    hidden = weights[weights < 0.01].sum() / weights.sum()
    assert f"they hold {100 * hidden:.1f} % of the weight" in shown.texts(".scroll .legend")[0]


def test_shades_say_the_same_as_numbers(show: Opener, world: Trace) -> None:
    weights = world.table().weights
    shown = show(world, "#/alignment")
    for link, most in [
        ("#/alignment?tick=0", 1),
        ("#/alignment?tick=0&scale=row", weights.max(axis=1)[:, None]),
    ]:
        shown.go(link)
        found = shown.page.eval_on_selector_all(
            ".shade", "all => all.map(one => one.getAttribute('fill-opacity'))"
        )
        shades = np.array([float(value) for value in found]).reshape(weights.shape)
        np.testing.assert_allclose(shades, weights / most, atol=1e-4)
        np.testing.assert_allclose(matrix(shown), weights, atol=1e-6)


def test_a_notebook_has_the_page_in_a_frame(browser: Browser, world: Trace) -> None:
    page = browser.new_page()
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_content(f"<p>a notebook</p>{world._repr_html_()}")
    frame = page.frame_locator("iframe")
    frame.locator("#recomputed[data-state=good]").wait_for()
    frame.locator("#next").click()
    assert frame.locator("#scrub").input_value() == "1"
    frame.get_by_role("link", name="Alignment").click()
    assert frame.locator(".matrix .box").count() == world.table().weights.size
    assert complaints == []
    page.close()


def test_what_it_computes_again_agrees(show: Opener, world: Trace) -> None:
    shown = show(world)
    assert shown.page.get_attribute("#recomputed", "data-state") == "good"
    assert max(shown.numbers("#recomputed b")) < 1e-6
    assert "largest difference" in shown.texts("#recomputed")[0]


@pytest.mark.parametrize(
    ("name", "by"), [("cross/weight", 0.01), ("cross/score", 0.5), ("context", 0.01), ("source", 0.5)]
)
def test_one_wrong_number_and_it_turns_red(show: Opener, world: Trace, name: str, by: float) -> None:
    at = world.tensors[name].shape[-1] * 2 + 1 if name != "source" else 1
    shown = show(changed(world, name, at, by), "#/walk?tick=14&merge=1&specials=1")
    assert shown.page.get_attribute("#recomputed", "data-state") == "bad"
    assert "does not agree" in shown.texts("#recomputed")[0]
    if name != "source":
        assert shown.page.locator(".lane .badge.bad").count() >= 1


def test_weights_set_by_hand_are_marked_and_not_held_against_their_scores(show: Opener, world: Trace) -> None:
    moved = changed(changed(world, "cross/weight", 0, -0.25), "cross/weight", 2, 0.25)
    contexts = moved.array("context").copy()
    contexts[0] = moved.weights()[0, 0] @ moved.array("source")
    tensors = {**moved.tensors, "context": Tensor.of(contexts.astype(np.float32), "T", "d")}
    moved = moved.model_copy(update={"tensors": tensors})
    assert show(moved).page.get_attribute("#recomputed", "data-state") == "bad"
    edits = [Edit(op="set", step=0, position=2, value=0.42)]
    shown = show(moved.model_copy(update={"edits": edits}))
    assert shown.page.get_attribute("#recomputed", "data-state") == "good"
    assert "Set by hand at this step" in shown.texts(".lane .foot")[1]
    shown.go("#/alignment?tick=0&merge=1&specials=1")
    marked = [text for text in shown.texts(".matrix .row-label text") if "✎" in text]
    assert marked == ["✎ le"]


def test_a_jump_shows_what_as_many_steps_show(show: Opener, world: Trace) -> None:
    """Whatever was shown before: one goes step by step, the other from anywhere to anywhere."""
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
def test_a_link_opened_again_shows_the_same(show: Opener, world: Trace, link: str) -> None:
    shown = show(world)
    shown.go(link)
    before = shown.dom()
    shown.page.reload()
    shown.ready()
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
def test_what_was_clicked_is_in_the_link(show: Opener, world: Trace, view: str, clicks: list[str]) -> None:
    shown = show(world, f"#/{view}?tick=5")
    for selector in clicks:
        before = shown.page.evaluate("() => location.hash")
        shown.page.click(selector)
        assert shown.page.evaluate("() => location.hash") != before
    before = shown.page.locator("main").inner_text()
    shown.page.reload()
    shown.ready()
    assert shown.page.locator("main").inner_text() == before


def test_everything_can_be_done_by_keys(show: Opener, world: Trace) -> None:
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


def _tab_to(shown: Shown, where: str) -> None:
    for _ in range(60):
        shown.press("Tab")
        if shown.page.evaluate("where => document.activeElement.closest(where) !== null", where):
            return
    pytest.fail(f"Tab never reaches {where}")


def test_each_tick_is_told(show: Opener, world: Trace) -> None:
    shown = show(world, "#/walk?tick=10&merge=1&specials=1")
    assert shown.page.get_attribute("#narration", "aria-live") == "polite"
    told = []
    for _ in range(5):
        told += shown.texts("#narration")
        shown.press("ArrowRight")
    assert "“black” has the highest" in told[0]
    assert "“black” gets 96 % of them" in told[1]
    assert "context" in told[2]
    assert "“noir” is written: the likeliest word" in told[4]
    assert len(set(told)) == 5


def test_pointing_at_a_number_lights_what_it_was_made_from(show: Opener, world: Trace) -> None:
    shown = show(world, "#/walk?tick=14&merge=1&specials=1")
    shown.page.hover('[data-id="e1"] .n')
    lit = shown.page.eval_on_selector_all("[data-lit]", "all => all.map(one => one.dataset.id)")
    assert set(lit) == {"e1", "q", "k1"}
    shown.go("#/alignment?tick=14&merge=1&specials=1")
    shown.page.hover('.matrix [data-r="2"][data-c="1"]')
    assert shown.page.locator('.link[data-lit][data-row="2"][data-col="1"]').count() == 1
    assert shown.page.locator(".link[data-lit]").count() == 1


def test_what_if_shows_both_sides(show: Opener, world: Trace) -> None:
    shown = show(world, "#/what-if?tick=0&op=zero&cell=1.2")
    asked = next(w for w in world.whatif if (w.op, w.step, w.position) == ("zero", 1, 2))
    assert shown.numbers("#tvd") == [asked.tvd]
    np.testing.assert_allclose(
        shown.numbers("[data-grid=after] .n"), [math.exp(top.logp) for top in asked.top], atol=1e-6
    )
    before = world.steps[1].top[: len(asked.top)]
    np.testing.assert_allclose(
        shown.numbers("[data-grid=before] .n"), [math.exp(top.logp) for top in before], atol=1e-6
    )
    wanted = {(w.step, w.position): w.tvd for w in world.whatif if w.op == "zero"}
    found = matrix(shown, "what-if")
    assert all(found[at] == tvd for at, tvd in wanted.items())
    shown.page.click('.matrix [data-r="3"][data-c="0"]')
    assert "cell=3.0" in shown.page.evaluate("() => location.hash")
    without = show(world.model_copy(update={"whatif": []}), "#/what-if")
    assert "heedful trace --what-if" in without.texts("main")[0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(show: Opener, world: Trace, scheme: str) -> None:
    if not AXE.exists():
        (pytest.fail if REQUIRED else pytest.skip)("axe-core is not there: npm ci in studio/")
    golden = world.model_copy(update={"gold": Gold(sure=[(0, 0), (1, 2), (2, 1)])})
    shown = show(golden, color_scheme=scheme)
    shown.page.evaluate(AXE.read_text(encoding="utf-8"))
    for link in [*LINKS, "#/alignment?tick=3&merge=1&specials=1", "#/what-if?tick=3"]:
        shown.go(link)
        found = shown.page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
        bad = [
            (v["id"], v["nodes"][0]["html"][:200])
            for v in found["violations"]
            if v["impact"] in ("serious", "critical")
        ]
        assert bad == [], link


ODD = [
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


def test_tokens_of_any_kind_are_text(show: Opener) -> None:
    trace = Trace.from_weights(ODD, ODD, np.eye(len(ODD)), model="</script><script>alert(2)</script>")
    shown = show(trace, "#/alignment?table=1")
    assert shown.texts(".matrix .row-label text") == [
        word if len(word) < 20 else word[:19] + "…" for word in ODD
    ]
    assert shown.texts(".twin tbody th") == ODD
    shown.go("#/walk?tick=4")
    assert shown.texts("[data-grid=weights] .label") == ODD
    assert "</script>" in shown.texts(".facts")[0]
    assert shown.page.locator("img").count() == 0
    assert shown.complaints == []


def test_a_large_matrix_is_painted_within_a_second_and_has_its_table(show: Opener) -> None:
    weights = np.random.default_rng(2).dirichlet(np.full(128, 0.05), (128, 8)).astype(np.float32)
    words = [f"word{i}" for i in range(128)]
    trace = Trace.from_weights(words, words, weights)
    shown = show(trace, "#/alignment")
    clock = shown.page.context.new_cdp_session(shown.page)
    clock.send("Performance.enable", {"timeDomain": "threadTicks"})  # others may be using the machine
    took: list[float] = []
    while len(took) < 8 and min(took, default=1.0) >= 1.0:  # others make it slow even by its own clock
        shown.page.reload()
        shown.ready()
        metrics = {m["name"]: m["value"] for m in clock.send("Performance.getMetrics")["metrics"]}
        took.append(metrics["TaskDuration"])
    assert 0 < min(took) < 1.0
    assert shown.page.locator("svg.matrix").count() == 0
    painted = shown.page.evaluate(
        "() => { const canvas = document.querySelector('canvas');"
        " const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
        " return new Set(data).size }"
    )
    assert painted > 20
    table = np.array(shown.numbers(".twin td")).reshape(128, -1)[:, :128]
    np.testing.assert_allclose(table, trace.table().weights, atol=1e-6)
    shown.page.focus("canvas")
    shown.press("ArrowRight", "ArrowDown")
    assert "output word word1, input word word1" in shown.texts(".cell-said")[0]


def test_nothing_moves_for_those_who_ask_for_less_motion(show: Opener, world: Trace) -> None:
    def duration(shown: Shown) -> str:
        found: str = shown.page.evaluate(
            "() => getComputedStyle(document.querySelector('.bar')).transitionDuration"
        )
        return found

    still, lively = show(world, reduced_motion="reduce"), show(world)
    assert duration(still) == "0s"
    assert duration(lively) != "0s"
    lively.page.wait_for_timeout(1600)
    assert lively.page.input_value("#scrub") == "0"  # it never starts by itself


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_more_is_further_from_the_page(show: Opener, world: Trace, scheme: str) -> None:
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
def test_the_page_is_as_wide_as_the_window(show: Opener, world: Trace, wide: int, link: str) -> None:
    shown = show(world, link, viewport={"width": wide, "height": 800})
    assert shown.page.evaluate("() => document.documentElement.scrollWidth") == wide


def test_a_model_without_attention_still_shows_its_words(show: Opener, world: Trace) -> None:
    trace = world.model_copy(update={"sites": [], "alignment": None, "whatif": [], "combine": {}})
    shown = show(trace, "#/walk?tick=2")
    assert "has no attention" in shown.texts("main")[0]
    assert shown.page.get_attribute("#scrub", "max") == str(len(trace.steps) - 1)
    likely = [math.exp(top.logp) for top in trace.steps[2].top]
    np.testing.assert_allclose(shown.numbers("[data-grid=words] .n"), likely, atol=1e-6)
    for link in ("#/alignment", "#/what-if"):
        shown.go(link)
        assert "has no attention" in shown.texts("main")[0]
    assert shown.complaints == []


def test_weights_alone_are_shown_as_such(show: Opener) -> None:
    shown = show(small.trace(), "#/walk?tick=4")
    assert "--detail steps" in shown.texts("main")[0]
    assert shown.page.get_attribute("#recomputed", "data-state") == "good"  # rows that sum to 1
    assert shown.complaints == []


def test_sites_and_heads_can_be_chosen(show: Opener) -> None:
    trace = pieces()
    more = trace.tensors["weight"].array()[:, :, ::-1].copy()
    other = Looks(site="dec.0.cross", kind="cross", heads=2, mass="one", weight="other")
    trace = trace.model_copy(
        update={
            "sites": [*trace.sites, other],
            "tensors": {**trace.tensors, "other": Tensor.of(more, "T", "H", "S")},
        }
    )
    shown = show(trace, "#/alignment")
    shown.page.select_option("#site", "dec.0.cross")
    shown.page.select_option("#head", "1")
    assert "site=dec.0.cross&head=1" in shown.page.evaluate("() => location.hash")
    np.testing.assert_allclose(matrix(shown), trace.table("dec.0.cross", 1).weights, atol=1e-6)

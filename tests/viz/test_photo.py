"""The photo view: weights as brightness, and the words that attend to a region."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import Page

import small_models
from chromium import unavailable
from heedful.data.images.files import SceneImage
from heedful.trace.schema import Candidate, Counterfactual, Side, SourceImage, Token, Trace
from heedful.viz.image import overlay_weights, pack_image
from viz.conftest import Opener
from viz.test_page import AXE


def image_trace() -> Trace:
    photo: SourceImage = pack_image(SceneImage(3, 1, 96).open(), (3, 4))
    names = [f"r{row + 1}c{column + 1}" for row in range(3) for column in range(4)]
    weights = np.random.default_rng(1).dirichlet(np.ones(12), 4)
    trace = Trace.from_weights(names, ["a", "red", "star", "</s>"], weights)
    tokens = [Token(text=name, word=at) for at, name in enumerate(names)]
    side = Side(text="scene.png", tokens=tokens, words=names, image=photo)
    return trace.model_copy(update={"source": side})


def test_weights_set_the_brightness_of_the_image() -> None:
    picture = SceneImage(3, 1, 96).open()
    lit = np.asarray(overlay_weights(picture, np.array([[1.0, 0.0], [0.0, 0.0]]), smooth=False)).astype(float)
    plain = np.asarray(picture).astype(float)
    assert np.abs(lit[:48, :48] - plain[:48, :48]).max() <= 1
    assert np.abs(lit[48:, 48:] - 0.22 * plain[48:, 48:]).max() <= 1


@pytest.mark.browser
def test_the_page_shows_the_weights_of_each_word(show: Opener) -> None:
    trace = image_trace()
    shown = show(trace, "#/photo?tick=5")
    page = shown.page
    assert page.locator("nav a[aria-current=page]").inner_text() == "Photo"
    assert page.locator(".step-buttons [aria-pressed=true]").inner_text() == "red"
    weights = [float(v or 0) for v in page.locator(".region").evaluate_all("all => all.map(o => o.dataset.v)")]
    assert weights == pytest.approx(trace.matrix()[1].tolist(), abs=1e-7)
    page.locator('.region[data-r="2"][data-c="1"]').click()
    labels = page.locator('[data-grid="users"] .label').all_inner_texts()
    order = np.argsort(-trace.matrix()[:, 9])
    assert labels == [["a", "red", "star", "</s>"][i] for i in order]
    assert "row 3, column 2" in page.locator(".side-panel h3").inner_text()
    page.keyboard.press("t")
    assert page.locator(".data-table tbody tr").count() == 12
    assert not shown.requests
    assert not shown.errors


@pytest.mark.browser
def test_arrow_keys_move_between_regions(show: Opener) -> None:
    page = show(image_trace(), "#/photo?tick=0").page
    page.locator('.region[tabindex="0"]').focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert page.locator('.region[aria-selected=true][data-r="1"][data-c="1"]').count() == 1


def edited_trace() -> Trace:
    """Return the trace with counterfactuals of every step and region."""
    trace = image_trace()
    top = [Candidate(id=1, text="blue", logp=-0.5), Candidate(id=2, text="a", logp=-1.5)]
    edits = [
        Counterfactual(op=op, step=step, position=position, tvd=(position + step) / 20, top=top)
        for op in ("onehot", "zero")
        for step in range(4)
        for position in range(12)
    ]
    return trace.model_copy(update={"counterfactuals": edits})


def background(page: Page, selector: str) -> dict[str, str]:
    found: dict[str, str] = page.locator(selector).first.evaluate(
        "one => { const style = getComputedStyle(one); return { image: style.backgroundImage.slice(0, 16),"
        " size: style.backgroundSize, position: style.backgroundPosition } }"
    )
    return found


@pytest.mark.browser
def test_walk_shows_thumbnails_of_regions_and_the_table_names_them(show: Opener) -> None:
    shown = show(image_trace(), "#/walk?tick=6&table=1")
    assert shown.page.locator("[data-grid=weights] .thumbnail").count() == 12
    where = '[data-grid=weights] .thumbnail[data-region="6"]'  # row 2 of 3, column 3 of 4
    assert background(shown.page, where) == {
        "image": 'url("data:image/',
        "size": "400% 300%",
        "position": "66.6667% 50%",
    }
    labels = shown.page.locator("[data-grid=weights] .label").all_inner_texts()
    assert labels[6].split() == ["row", "2,", "column", "3"]
    assert "the region in row" in shown.texts("#narration")[0]
    assert shown.texts(".data-table tbody th")[6] == "r2c3"
    assert not shown.requests
    assert not shown.errors


@pytest.mark.browser
def test_what_if_shows_the_image_and_the_chosen_region(show: Opener) -> None:
    shown = show(edited_trace(), "#/what-if?tick=0")
    page = shown.page
    changes = [float(v or 0) for v in page.locator(".region").evaluate_all("all => all.map(o => o.dataset.v)")]
    assert changes == pytest.approx([position / 20 for position in range(12)])
    page.locator('.region[data-r="1"][data-c="2"]').click()
    assert page.locator(".region-outcome .thumbnail.large").get_attribute("data-region") == "6"
    assert (
        "the region in row 2, column 3, the most likely word would be “blue”" in page.locator(".outcome").inner_text()
    )
    page.locator('.step-buttons [data-step="2"]').click()
    assert page.locator("#comparison-title").inner_text() == "Step 3, “star”"
    page.keyboard.press("t")
    assert "r2c3" in page.locator(".data-table thead").inner_text()
    assert not shown.errors


@pytest.mark.browser
@pytest.mark.parametrize("link", ["#/photo?tick=0&table=1", "#/walk?tick=4", "#/what-if?tick=0", "#/alignment?tick=0"])
def test_axe_finds_nothing_serious(show: Opener, link: str) -> None:
    if not AXE.is_file():
        unavailable("axe-core is not there: npm ci in studio/")
    page = show(edited_trace(), link).page
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []


@pytest.mark.browser
def test_traces_without_an_image_have_no_photo_view(show: Opener) -> None:
    page = show(small_models.small_trace(), "#/photo").page
    assert "Photo" not in page.locator("nav").inner_text()
    assert page.locator("main").get_attribute("data-view") == "walk"

"""The photo view: weights as brightness, and the words that attend to a region."""

from __future__ import annotations

import numpy as np
import pytest

import small_models
from heedful.data.images.files import SceneImage
from heedful.trace.schema import Side, SourceImage, Token, Trace
from heedful.viz.image import overlay_weights, pack_image
from viz.conftest import REQUIRED, Opener
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


@pytest.mark.browser
def test_axe_finds_nothing_serious(show: Opener) -> None:
    if not AXE.is_file():
        (pytest.fail if REQUIRED else pytest.skip)("axe-core is not there: npm ci in studio/")
    page = show(image_trace(), "#/photo?tick=0&table=1").page
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []


@pytest.mark.browser
def test_traces_without_an_image_have_no_photo_view(show: Opener) -> None:
    page = show(small_models.small_trace(), "#/photo").page
    assert "Photo" not in page.locator("nav").inner_text()
    assert page.locator("main").get_attribute("data-view") == "walk"

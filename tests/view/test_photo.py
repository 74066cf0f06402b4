"""The Photo view in a browser: its weights are the trace's, and a region tells which words used it."""

from __future__ import annotations

import numpy as np
import pytest

import small
from heedful.record import Photo, Side, Token, Trace
from heedful.view.photo import overlay, photo_of
from heedful.vision.pictures import ScenePicture
from view.conftest import REQUIRED, Opener
from view.test_page import AXE


def pictured() -> Trace:
    photo: Photo = photo_of(ScenePicture(3, 1, 96).open(), (3, 4))
    names = [f"r{row + 1}c{column + 1}" for row in range(3) for column in range(4)]
    weights = np.random.default_rng(1).dirichlet(np.ones(12), 4)
    made = Trace.from_weights(names, ["a", "red", "star", "</s>"], weights)
    tokens = [Token(text=name, word=at) for at, name in enumerate(names)]
    side = Side(text="scene.png", tokens=tokens, words=names, image=photo)
    return made.model_copy(update={"source": side})


def test_weights_light_the_photograph() -> None:
    picture = ScenePicture(3, 1, 96).open()
    lit = np.asarray(overlay(picture, np.array([[1.0, 0.0], [0.0, 0.0]]), smooth=False)).astype(float)
    plain = np.asarray(picture).astype(float)
    assert np.abs(lit[:48, :48] - plain[:48, :48]).max() <= 1
    assert np.abs(lit[48:, 48:] - 0.22 * plain[48:, 48:]).max() <= 1


@pytest.mark.browser
def test_the_page_shows_what_was_read_for_each_word(show: Opener) -> None:
    trace = pictured()
    shown = show(trace, "#/photo?tick=5")
    page = shown.page
    assert page.locator("nav a[aria-current=page]").inner_text() == "Photo"
    assert page.locator(".step-buttons [aria-pressed=true]").inner_text() == "red"
    found = [float(v or 0) for v in page.locator(".region").evaluate_all("all => all.map(o => o.dataset.v)")]
    assert found == pytest.approx(trace.matrix()[1].tolist(), abs=1e-7)
    page.locator('.region[data-r="2"][data-c="1"]').click()
    labels = page.locator('[data-grid="users"] .label').all_inner_texts()
    order = np.argsort(-trace.matrix()[:, 9])
    assert labels == [["a", "red", "star", "</s>"][i] for i in order]
    assert "row 3, column 2" in page.locator(".answer h3").inner_text()
    page.keyboard.press("t")
    assert page.locator(".twin tbody tr").count() == 12
    assert not shown.asked
    assert not shown.complaints


@pytest.mark.browser
def test_keys_go_from_region_to_region(show: Opener) -> None:
    page = show(pictured(), "#/photo?tick=0").page
    page.locator('.region[tabindex="0"]').focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert page.locator('.region[aria-selected=true][data-r="1"][data-c="1"]').count() == 1


@pytest.mark.browser
def test_nothing_serious_is_found_by_axe(show: Opener) -> None:
    if not AXE.is_file():
        (pytest.fail if REQUIRED else pytest.skip)("axe-core is not there: npm ci in studio/")
    page = show(pictured(), "#/photo?tick=0&table=1").page
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []


@pytest.mark.browser
def test_without_a_picture_there_is_no_such_view(show: Opener) -> None:
    page = show(small.trace(), "#/photo").page
    assert "Photo" not in page.locator("nav").inner_text()
    assert page.locator("main").get_attribute("data-view") == "walk"

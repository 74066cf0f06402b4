"""Trainings of the studio: started, stopped by an interrupt, refused where they cannot be."""

from __future__ import annotations

import time
from typing import Any

import pytest

from studio.conftest import WAIT, Studio

pytestmark = pytest.mark.browser


def state(studio: Studio, id: str) -> Any:
    return studio.context.request.get(f"{studio.address}/v1/train/{id}", timeout=WAIT).json()


def wait_for_state(studio: Studio, id: str, wanted: str) -> None:
    end = time.monotonic() + WAIT / 1000
    while state(studio, id)["state"] != wanted:
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_training_is_watched_filmed_stopped_found_again_and_resumed(studio: Studio) -> None:
    studio.go("#/train?model=en-fr")
    if studio.page.locator("#train-new").count() > 0:
        studio.page.click("#train-new")
    studio.page.select_option("#world-languages", "fr-vi")
    with studio.page.expect_response(lambda answer: answer.request.method == "POST" and "/v1/train" in answer.url):
        studio.page.click("#train-world")
    other = studio.context.request.post(f"{studio.address}/v1/train", data={"world": "phrases"})
    assert other.status == 409
    studio.page.wait_for_selector("#film-matrix", timeout=2 * WAIT)
    studio.page.click("#train-stop")
    studio.page.wait_for_selector("#train-state[data-state=stopped]")
    id = studio.context.request.get(f"{studio.address}/v1/train").json()["trainings"][-1]["id"]
    film = studio.context.request.get(f"{studio.address}/v1/train/{id}/animation?sentence=1", timeout=WAIT)
    assert film.body().startswith(b"GIF89a")
    assert studio.context.request.get(f"{studio.address}/v1/train/{id}/animation?sentence=9").status == 404
    weights = studio.numbers("#film-matrix td")
    studio.page.reload()  # the server still has it
    studio.page.wait_for_selector("#film-matrix")
    assert studio.numbers("#film-matrix td") == weights
    assert studio.page.locator(".curve").count() == 5
    studio.page.click("#train-resume")
    wait_for_state(studio, id, "running")
    studio.page.click("#train-stop")
    wait_for_state(studio, id, "stopped")


def test_pairs_that_were_pasted_are_there_after_a_reload(studio: Studio) -> None:
    studio.go("#/train?model=en-fr")
    if studio.page.locator("#train-new").count() > 0:
        studio.page.click("#train-new")
    studio.page.fill("#train-data", "the cat\tle chat\nthe dog\tle chien")
    studio.page.reload()
    studio.page.wait_for_selector("#train-data, #train-new")
    stored = studio.page.evaluate("() => JSON.parse(localStorage.getItem('heedful-studio')).texts.train")
    assert stored == "the cat\tle chat\nthe dog\tle chien"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"world": "phrases", "data": "a\tb"},
        {"world": "nowhere"},
        {"minutes": -1},
        {"world": "phrases", "languages": "en-xx"},
    ],
)
def test_requests_that_make_no_sense_are_refused(studio: Studio, body: dict[str, Any]) -> None:
    assert studio.context.request.post(f"{studio.address}/v1/train", data=body).status == 422


def test_unknown_trainings(studio: Studio) -> None:
    assert studio.context.request.get(f"{studio.address}/v1/train/none").status == 404

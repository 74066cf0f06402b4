"""The studio with bundled models: what it shows is what the server answers, in every view."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import matplotlib
import numpy as np
import pytest

from heedful.serve.studio import free_port
from heedful.trace.schema import Trace
from studio.conftest import Studio
from viz.test_page import AXE

pytestmark = pytest.mark.browser
SENTENCE = "The cat sleeps on the chair."
PHOTO = Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg"


def ask(studio: Studio, text: str = SENTENCE, **fields: object) -> Trace:
    body = {"model": "en-fr", "input": text, "detail": "weights", "what_if": False, **fields}
    return Trace.model_validate(studio.post("/v1/trace", body))


def test_without_the_token_nobody_is_let_in(studio_address: str) -> None:
    address = studio_address.partition("/session")[0]
    for path in ("/", "/v1/models", "/v1/train", "/session?token=wrong"):
        with pytest.raises(HTTPError) as refused:
            urlopen(address + path)
        assert refused.value.code == 401
        refused.value.close()


def test_a_link_on_another_site_opens_an_exercise(studio: Studio) -> None:
    link = f"{studio.address}/open#/lesson?model=en-fr&in={SENTENCE.replace(' ', '%20')}"
    studio.page.route(
        "https://lessons.example/",
        lambda route: route.fulfill(body=f'<a href="{link}">Guess</a>', content_type="text/html"),
    )
    studio.page.goto("https://lessons.example/")
    studio.page.click("a")
    studio.page.wait_for_selector("#lesson-pair")
    assert studio.page.input_value("#input") == SENTENCE
    studio.elsewhere.remove("https://lessons.example/")


def test_typing_shows_the_output_and_where_it_looked(studio: Studio) -> None:
    studio.go()
    studio.write(SENTENCE)
    trace = ask(studio)
    assert studio.text("#output") == trace.target.text
    table = trace.table(specials=False)
    assert studio.page.locator(".chip.out").all_inner_texts() == table.rows
    drawn = np.array(studio.numbers("#alignment-pair .ribbons path"))
    expected = table.weights[table.weights >= 0.04]
    assert np.allclose(np.sort(drawn), np.sort(expected), atol=1e-6)
    studio.page.hover(".chip.out >> nth=1")
    lit = studio.page.locator(".ribbons path[data-highlighted]").evaluate_all("all => all.map(one => one.dataset.row)")
    assert set(lit) == {"1"}


def test_an_alternative_is_forced_and_the_rest_is_written_again(studio: Studio) -> None:
    studio.go()
    studio.write(SENTENCE)
    studio.page.click(".chip.out >> nth=0")
    first = studio.page.locator("#alternatives .candidate:not([aria-pressed=true])").first
    token = int(first.get_attribute("data-token") or 0)
    first.click()
    studio.page.wait_for_selector("#release")
    studio.wait()
    assert studio.text("#output") == ask(studio, prefix=[token]).target.text
    studio.page.click("#release")
    studio.page.wait_for_selector("#release", state="detached")
    studio.wait()
    assert studio.text("#output") == ask(studio).target.text


def test_a_changed_weight_changes_the_output_and_can_be_undone_and_shared(studio: Studio) -> None:
    studio.go()
    studio.write(SENTENCE)
    studio.page.click("#to-what-if")
    studio.page.wait_for_selector("#surprise")
    studio.page.click("#surprise")
    studio.page.wait_for_selector(".edit-list > ul > li")
    studio.wait()
    edits = [text.removeprefix("--set ") for text in studio.page.locator(".edit-list code").all_text_contents()]
    answer = studio.post("/v1/whatif", {"model": "en-fr", "input": SENTENCE, "edits": edits})
    words = Trace.model_validate(answer["after"]).target.words
    shown = studio.page.locator("#after .chip:not(.special)")
    assert studio.text("#before") == answer["before"]["target"]["text"]
    assert shown.all_inner_texts() == words
    assert answer["changed"]
    assert studio.page.get_attribute("#verdict", "data-changed") == "true"
    link = studio.page.url
    studio.page.click("#undo")
    studio.page.wait_for_selector(".edit-list", state="detached")
    studio.wait()
    assert " ".join(shown.all_inner_texts()) == studio.text("#before")
    studio.page.click("#redo")
    studio.page.wait_for_selector(".edit-list")
    studio.go(link[len(studio.address) + 1 :])
    studio.page.wait_for_selector(".edit-list")
    studio.page.wait_for_selector("#after")
    studio.wait()
    assert studio.page.locator("#after .chip:not(.special)").all_inner_texts() == words


def test_bars_are_moved_by_pointer_and_by_keys(studio: Studio) -> None:
    studio.go("#/what-if?model=en-fr")
    studio.page.wait_for_selector(".drag-track")
    studio.wait()
    bar = studio.page.locator(".drag-track").nth(1)
    box = bar.bounding_box()
    assert box is not None
    studio.page.mouse.move(box["x"] + 5, box["y"] + 10)
    studio.page.mouse.down()
    studio.page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 10)
    studio.page.mouse.up()
    studio.wait()
    assert float(bar.get_attribute("data-v") or 0) == pytest.approx(0.5, abs=0.02)
    bar.focus()
    studio.page.keyboard.press("Home")
    studio.wait()
    assert float(bar.get_attribute("data-v") or 1) == pytest.approx(0, abs=1e-6)
    studio.page.get_by_role("button", name="Start over").click()
    studio.wait()
    before = studio.numbers("[data-cell='0.2']")[0]
    studio.page.click("[data-cell='0.2']")
    studio.wait()
    # all of the weight is on the first token of a word; the cell has the mean of the word's tokens
    assert studio.numbers("[data-cell='0.2']")[0] > before + 0.25


def test_models_are_compared_on_one_input(studio: Studio) -> None:
    studio.go()
    studio.write(SENTENCE)
    studio.show("compare", "[data-output='1']")
    uniform = studio.post("/v1/whatif", {"model": "en-fr", "input": SENTENCE, "edits": ["uniform@cross"]})
    assert studio.text("[data-output='0']") == ask(studio).target.text
    assert studio.text("[data-output='1']") == uniform["after"]["target"]["text"]
    studio.page.hover("#lane-0 .chip.in >> nth=1")
    assert studio.page.locator("#lane-1 .chip.in[data-highlighted]").count() == 1


def test_a_branch_of_the_beam_is_forced(studio: Studio) -> None:
    studio.go()
    studio.write(SENTENCE)
    studio.show("beam", ".beam-node")
    finished = studio.page.locator(".beam-node.finished").last
    finished.click()
    text = studio.text(".hypothesis")
    studio.page.click("#walk-branch")
    studio.page.wait_for_selector("#scrub")
    studio.wait()
    studio.show("write", "#output")
    assert studio.text("#output") == text


def test_a_lesson_hides_the_weights_until_there_is_a_guess(studio: Studio) -> None:
    studio.go()
    studio.write(SENTENCE)
    studio.show("lesson", "#lesson-pair")
    assert studio.page.locator("#lesson-pair .ribbons path").count() == 0
    studio.page.click("#lesson-pair .chip.in >> nth=0")
    assert studio.page.locator("#lesson-pair .ribbons path").count() > 0
    assert studio.text("#lesson-answer") != ""


def test_the_strip_tests_the_weights_of_this_step(studio: Studio) -> None:
    studio.go()
    studio.write(SENTENCE)
    studio.page.click("#strip-toggle")
    studio.page.wait_for_selector(".matter[data-ready=true]")
    assert studio.page.locator(".test").count() == 5
    assert all(0 <= value <= 1 for value in studio.numbers(".test .n[data-v]"))


def test_classify_read_photo_and_history(studio: Studio) -> None:
    studio.go("#/classify?model=intents&in=My+card+has+not+arrived.")
    studio.page.wait_for_selector(".shaded")
    answer = studio.post("/v1/classify", {"model": "intents", "inputs": ["My card has not arrived."]})["outputs"][0]
    assert studio.numbers(".candidates .n")[0] == pytest.approx(answer["p"], abs=1e-4)
    studio.go("#/read?model=novels&in=The+old+man+walked.")
    studio.page.wait_for_selector(".read-word")
    words = studio.post("/v1/read", {"model": "novels", "inputs": ["The old man walked."]})["outputs"][0]["words"]
    assert np.allclose(studio.numbers(".read-word"), [word["bits"] for word in words][:-1], atol=1e-3)
    studio.go("#/photo?model=photos")
    studio.page.set_input_files("#picture", PHOTO)
    studio.page.wait_for_selector(".panel")
    assert studio.page.locator(".panel").count() == len(studio.text("#output").split())
    studio.page.click("#paint-over")
    studio.page.wait_for_selector("#eraser[data-uri]")
    studio.page.click("#eraser", position={"x": 60, "y": 60})
    studio.page.click("#caption-again")
    studio.page.wait_for_selector("#restore-picture")
    studio.wait()
    studio.go("#/history?model=films")
    studio.page.fill("#catalog", "star wars")
    studio.page.click(".found button >> nth=0")
    studio.page.wait_for_selector("[data-grid=history]")
    assert studio.page.locator(".step-buttons button").count() == 10


def save(studio: Studio, kind: str) -> None:
    studio.page.click("#save summary")
    studio.page.click(f"[data-choice={kind}]")


@pytest.mark.parametrize("kind", ["html", "svg", "json"])
def test_the_page_is_saved(studio: Studio, kind: str, tmp_path: Path) -> None:
    studio.go()
    studio.write(SENTENCE)
    studio.show("alignment", ".matrix")
    with studio.page.expect_download() as download:
        save(studio, kind)
    download.value.save_as(tmp_path / f"page.{kind}")
    text = (tmp_path / f"page.{kind}").read_text(encoding="utf-8")
    assert download.value.suggested_filename == f"heedful-alignment.{kind}"
    if kind == "json":
        assert json.loads(text)["source"]["text"] == SENTENCE
    else:
        assert {"html": "<!doctype html>", "svg": "<svg"}[kind] in text


VIEWS = {
    "write": ".chip.out",
    "what-if": ".drag-track",
    "compare": "[data-output='1']",
    "walk": "#scrub",
    "alignment": ".matrix",
    "beam": ".beam-node",
    "lesson": "#lesson-pair",
    "train": "#train-world, #train-new, #train-stop",
}


@pytest.mark.parametrize("language", ["en", "vi", "zh"])
def test_every_view_is_accessible_and_fits(studio: Studio, language: str) -> None:
    studio.go(f"#/write?model=en-fr&in={SENTENCE}")
    studio.page.select_option("#language", language)
    studio.page.wait_for_function(
        "language => (document.querySelector('[data-tab=train]').textContent === 'Train') === (language === 'en')",
        arg=language,
    )
    studio.page.evaluate(AXE.read_text(encoding="utf-8"))
    for view, selector in VIEWS.items():
        studio.show(view, selector)
        found = studio.page.evaluate(
            "async () => (await axe.run(document, { resultTypes: ['violations'] })).violations"
            ".filter(one => ['serious', 'critical'].includes(one.impact))"
            ".map(one => `${one.id}: ${one.nodes.map(node => node.html.slice(0, 200)).join(' ')}`)"
        )
        assert found == [], view
        for width in (390, 1600):
            studio.page.set_viewport_size({"width": width, "height": 900})
            assert studio.page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0, (view, width)
        studio.page.set_viewport_size({"width": 1280, "height": 900})
    studio.page.select_option("#language", "en")


def test_a_text_that_was_typed_is_there_after_a_reload(studio: Studio) -> None:
    studio.go()
    studio.write("The dog eats.")
    studio.page.reload()
    studio.page.wait_for_selector("#output")
    assert studio.page.input_value("#input") == "The dog eats."


def test_a_port_that_is_taken_is_not_taken_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert free_port(port) == 0
    assert free_port(port) == port

"""Views of the studio beyond a translation: strips, arcs, histories, many heads, saved figures."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from heedful.trace.schema import Trace
from studio.conftest import Studio, start_studio

pytestmark = pytest.mark.browser
TEXT = "The old man walked slowly to the door."


def test_arcs_lead_to_the_words_that_were_looked_at(studio: Studio) -> None:
    studio.go(f"#/read?model=novels&in={TEXT.replace(' ', '+')}")
    studio.page.wait_for_selector(".read-word")
    studio.wait()
    studio.page.click("[data-word='4']")
    studio.page.wait_for_selector("[data-word='4'][aria-pressed=true]")
    trace = Trace.model_validate(studio.post("/v1/trace", {"model": "novels", "input": TEXT, "detail": "weights"}))
    step = next(i for i, token in enumerate(trace.target.tokens) if token.word == 4)
    weights = trace.matrix()[step][1 : step + 1]  # the first position is the start token
    drawn = studio.numbers(".arcs path")
    assert np.allclose(sorted(drawn), sorted(weight for weight in weights if weight >= 0.05), atol=1e-6)


def test_the_strip_tests_readers_and_recommenders(studio: Studio) -> None:
    studio.go(f"#/read?model=novels&in={TEXT.replace(' ', '+')}")
    studio.page.wait_for_selector(".read-word")
    studio.page.click("[data-word='4']")
    studio.wait()
    if studio.page.get_attribute("#strip-toggle", "aria-expanded") == "false":
        studio.page.click("#strip-toggle")
    studio.page.wait_for_selector(".matter[data-ready=true]")
    body = {"model": "novels", "input": TEXT, "edits": [{"op": "uniform", "step": 4}]}
    after = studio.post("/v1/whatif", body)["after"]
    assert studio.numbers(".test .n[data-v]")[1] == pytest.approx(np.exp(after["steps"][4]["logp"]), abs=1e-6)
    assert studio.page.locator(".test").count() == 5
    studio.go("#/history?model=films")
    studio.page.wait_for_selector("#sample-items, .chosen-items")
    if studio.page.locator("#sample-items").count() > 0:
        studio.page.click("#sample-items")
    studio.page.wait_for_selector("[data-grid=history]")
    studio.page.wait_for_selector(".matter[data-ready=true]")  # still open
    assert studio.page.locator(".test").count() == 5


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_figures_are_saved(studio: Studio, kind: str, tmp_path: Path) -> None:
    studio.go(f"#/read?model=novels&in={TEXT.replace(' ', '+')}")
    studio.page.wait_for_selector(".read-word")
    studio.page.focus("#save summary")
    with studio.page.expect_download() as download:
        for key in ["ArrowDown"] * (2 if kind == "png" else 4) + ["Enter"]:
            studio.page.keyboard.press(key)
    download.value.save_as(tmp_path / "page")
    assert download.value.suggested_filename == f"heedful-read.{kind}"
    assert (tmp_path / "page").read_bytes().startswith({"png": b"\x89PNG", "pdf": b"%PDF"}[kind])


@pytest.fixture(scope="module")
def transformers_studio(session: Studio, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A studio with a small translator as `save_pretrained` of transformers writes it."""
    pytest.importorskip("transformers")
    import heedful
    from integrations import tiny_transformers as tiny

    folder = tmp_path_factory.mktemp("models") / "marian"
    tokenizer = tiny.tokenizer()
    heedful.from_transformers(tiny.marian(len(tokenizer)), tokenizer).save_pretrained(folder)
    browser = session.context.browser
    assert browser is not None
    with start_studio(tmp_path_factory.mktemp("log") / "log", "-m", f"hf:{folder}") as address:
        studio = Studio(browser.new_context(reduced_motion="reduce"), address.partition("/session")[0])
        studio.page.goto(address)
        yield studio
        assert studio.errors == []


def test_a_folder_of_transformers_is_opened_and_its_self_attention_is_edited(transformers_studio: Studio) -> None:
    studio = transformers_studio
    studio.go("#/heads?model=marian&in=the+old+chair")
    studio.page.wait_for_selector("#sinks[aria-pressed=true]")  # those that look at start and end are folded
    studio.page.click("#sinks")
    trace = studio.post("/v1/trace", {"model": "marian", "input": "the old chair", "detail": "weights"})
    assert studio.page.locator(".thumbnail-button").count() == sum(site["heads"] for site in trace["sites"])
    studio.go("#/what-if?model=marian&in=the+old+chair")
    studio.page.wait_for_selector(".drag-track")
    studio.page.select_option("#site", "enc.0.self")
    studio.page.click("[data-cell='2.0']")
    studio.wait()
    assert studio.numbers("[data-cell='2.0']")[0] == pytest.approx(1, abs=1e-3)
    studio.page.click("#undo")
    studio.page.wait_for_selector(".edit-list", state="detached")
    studio.wait()
    studio.page.select_option("#site", "dec.0.self")
    assert studio.page.is_disabled("[data-cell='0.1']")  # a word does not read later ones
    studio.page.select_option("#head", "1")
    studio.page.click("#mask-head")
    studio.wait()
    assert studio.text(".edit-list > ul > li span") == "Head 1 is masked (dec.0.self)"
    assert studio.page.locator(".status.bad").count() == 0


def test_a_name_that_is_no_model_of_transformers_is_an_error_at_the_start(tmp_path: Path) -> None:
    from command_line import HEEDFUL

    command = [str(HEEDFUL), "studio", "--port", "0", "--no-browser", "-m", f"hf:{tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "the folder has no config.json" in done.stderr
    assert "Traceback" not in done.stderr

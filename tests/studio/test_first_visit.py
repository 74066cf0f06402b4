"""What a first visit needs: a guide that ends, empty views that say what to do, and nothing that is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Route

from studio.conftest import Studio

pytestmark = pytest.mark.browser
SENTENCE = "The black cat sleeps on the old chair."


@pytest.fixture
def visit(studio: Studio) -> Iterator[Studio]:
    """A studio whose browser has stored nothing, before and after."""
    forget = "() => { localStorage.clear(); indexedDB.deleteDatabase('heedful-pictures') }"
    studio.go()
    studio.page.evaluate(forget)
    yield studio
    studio.page.evaluate(forget)


def test_a_guide_leads_from_an_empty_page_to_a_word_that_changed(visit: Studio) -> None:
    visit.page.goto("about:blank")
    visit.go("")
    visit.page.wait_for_selector("#guide[data-step='1']")
    assert visit.page.input_value("#input") == SENTENCE
    visit.page.hover(".chip.out >> nth=2")
    visit.page.click("#guide-next")
    visit.page.click("#surprise")
    visit.page.wait_for_selector("#guide[data-step='3']")
    assert visit.page.get_attribute("#verdict", "data-changed") == "true"
    assert visit.page.locator("#after .chip.changed").count() > 0
    visit.page.click("#guide-close")
    visit.page.reload()
    visit.page.wait_for_selector("#after")
    assert visit.page.locator("#guide").count() == 0
    visit.page.click("#help-button")
    visit.page.click("#guide-again")
    visit.page.wait_for_selector("#guide")


def test_empty_views_offer_an_example(visit: Studio) -> None:
    visit.go("#/photo?model=photos")
    visit.page.click("#sample-picture")
    visit.page.wait_for_selector(".panel")
    visit.go("#/history?model=films")
    visit.page.click("#sample-items")
    visit.page.wait_for_selector("[data-grid=history]")
    assert visit.page.locator(".chosen-items li").count() == 3
    visit.go("#/write?model=en-fr")
    visit.page.fill("#input", "")
    visit.page.reload()
    visit.page.wait_for_selector("[data-tab]")
    assert visit.page.input_value("#input") != ""  # an example again


def test_items_pictures_pairs_and_lanes_are_there_after_a_reload(visit: Studio) -> None:
    visit.go("#/photo?model=photos")
    visit.page.click("#sample-picture")
    visit.page.wait_for_selector(".panel")
    caption = visit.text("#output")
    visit.page.reload()
    visit.page.wait_for_selector(".panel")
    assert visit.text("#output") == caption
    visit.go("#/history?model=films")
    visit.page.click("#sample-items")
    visit.page.wait_for_selector("[data-grid=history]")
    chosen = visit.page.locator(".chosen-items li").all_inner_texts()
    link = visit.page.url
    visit.page.evaluate("() => localStorage.clear()")
    visit.go(link[len(visit.address) + 1 :])
    visit.page.wait_for_selector("[data-grid=history]")
    assert visit.page.locator(".chosen-items li").all_inner_texts() == chosen
    visit.go("#/compare?model=en-fr&in=The+cat+sleeps.")
    visit.page.wait_for_selector("[data-output='1']")
    visit.page.click("#add-lane")
    visit.page.wait_for_selector("[data-output='2']")
    visit.page.reload()
    visit.page.wait_for_selector("[data-output='2']")
    assert visit.page.input_value("[data-mechanism='2']") == "none"


def test_a_server_that_is_away_is_noticed_and_asked_again(visit: Studio) -> None:
    visit.write(SENTENCE)
    visit.context.set_offline(True)
    visit.page.fill("#input", "The dog eats.")
    visit.page.wait_for_selector("#offline")
    visit.context.set_offline(False)
    visit.page.wait_for_selector('#output[data-for="The dog eats."]')
    assert visit.page.locator("#offline").count() == 0
    visit.errors[:] = [error for error in visit.errors if "ERR_INTERNET_DISCONNECTED" not in error]


def test_a_request_is_cancelled_when_the_text_changes_and_a_slow_server_is_seen_to_work(visit: Studio) -> None:
    visit.write(SENTENCE)
    failed: list[str] = []
    visit.page.on("requestfailed", lambda request: failed.append(request.post_data or ""))
    held: list[Route] = []

    def hold(route: Route) -> None:
        if "The dog" in (route.request.post_data or ""):
            held.append(route)  # never answered
        else:
            route.continue_()

    visit.page.route("**/v1/trace", hold)
    visit.page.fill("#input", "The dog")
    visit.page.wait_for_selector("#activity[data-state=busy]")
    visit.page.wait_for_function("() => document.querySelector('#main').ariaBusy === 'true'")
    while not held:
        visit.page.wait_for_timeout(20)
    visit.write("A cat.")
    assert any("The dog" in text for text in failed)
    visit.page.unroute_all(behavior="ignoreErrors")

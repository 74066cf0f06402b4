"""Links from the lessons and the lesson plan open the studio with the view, the model and the input that they name."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from lesson_links import studio_links
from studio.conftest import Studio

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("link", studio_links())
def test_a_link_opens_its_exercise(studio: Studio, link: str) -> None:
    parts = urlsplit(link)
    view, _, query = parts.fragment.removeprefix("/").partition("?")
    wanted = {name: values[0] for name, values in parse_qs(query).items()}
    studio.go(f"open#{parts.fragment}")
    if view != "photo":  # which waits for a photograph
        studio.wait()
        studio.page.wait_for_selector(f"[data-tab={view}][aria-selected=true], [data-tab={view}][aria-current]")
    assert studio.page.input_value("#model") == wanted["model"]
    if "in" in wanted:
        assert studio.page.input_value("#input") == wanted["in"]
    assert studio.errors == []

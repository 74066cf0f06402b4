"""Every lesson has what a lesson needs, and every exercise has an answer that is checked when the site is built."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from lesson_links import DOCS, LESSONS, studio_links

ROOT = Path(__file__).parents[2]
CELL = re.compile(r"^```\{code-cell\} ipython3\n(?P<code>.*?)^```$", re.M | re.S)


def test_there_are_thirteen_lessons_in_the_order_of_the_list() -> None:
    index = (DOCS / "lessons" / "index.md").read_text(encoding="utf-8")
    assert [path.stem for path in LESSONS] == re.findall(r"(?m)^\d\d-[\w-]+$", index)
    assert len(LESSONS) == 13


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_has_all_its_parts(lesson: Path) -> None:
    text = lesson.read_text(encoding="utf-8")
    sections = re.split(r"(?m)^## ", text)
    titles = [section.partition("\n")[0] for section in sections[1:]]
    assert "**The question.**" in sections[0]
    for title in ("The picture", "Try it yourself", "Exercises", "What the papers found", "What we measured"):
        assert title in titles
    assert any(title.startswith(("The formula", "From the idea")) for title in titles)
    assert any("plain" in title or "lines" in title for title in titles)
    assert any("library" in title or "real model" in title or "table" in title for title in titles)
    picture = sections[1 + titles.index("The picture")]
    assert re.search(r"plot|\.draw|axes", picture), "the picture is drawn"
    seconds = re.search(r"```\{lesson\} \d+ (\d+)", text)
    assert seconds
    assert int(seconds[1]) < 60


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_every_exercise_has_an_answer_with_an_assertion(lesson: Path) -> None:
    exercises = re.split(r"(?m)^## ", lesson.read_text(encoding="utf-8"))
    (section,) = [one for one in exercises if one.startswith("Exercises\n")]
    parts = re.split(r"(?m)^\*\*\d\.\*\* ", section)[1:]
    assert len(parts) >= 3
    for part in parts:
        answer = CELL.search(part)
        assert answer, part
        assert ":tags: [hide-cell]" in answer["code"]
        assert re.search(r"\bassert |raise AssertionError", answer["code"])


@pytest.mark.parametrize("link", studio_links())
def test_a_link_to_the_studio_names_a_view_and_a_bundled_model(link: str) -> None:
    fragment = urlsplit(link).fragment
    view, _, query = fragment.removeprefix("/").partition("?")
    (model,) = parse_qs(query)["model"]
    assert (ROOT / "src" / "heedful" / "bundled" / model / "model.json").exists()
    views = re.search(r"VIEWS = \[(.*?)\]", (ROOT / "studio" / "src" / "link.ts").read_text(encoding="utf-8"), re.S)
    assert views
    assert f'"{unquote(view)}"' in views[1]


def test_each_kind_of_exercise_has_a_link_to_the_studio() -> None:
    views = {link.partition("#/")[2].partition("?")[0] for link in studio_links()}
    assert views >= {"lesson", "what-if", "walk", "photo", "read", "classify", "history"}

"""The translations are complete: every string of the English pages has one, and none is left of a page that changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx_intl", reason="the extra `docs` is not installed")

from babel.messages.pofile import read_po

ROOT = Path(__file__).parents[2]
LOCALES = ROOT / "docs" / "locale"
LANGUAGES = ("vi", "zh_CN")


@pytest.fixture(scope="session")
def english(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Return the strings of each English page, extracted by Sphinx."""
    folder = tmp_path_factory.mktemp("gettext")
    environment = {**os.environ, "HEEDFUL_DOCS_MESSAGES": "1", "HEEDFUL_DOCS_EXECUTE": "off"}
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-b",
        "gettext",
        "-d",
        f"{folder}/trees",
        f"{ROOT}/docs",
        str(folder),
    ]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    pages = {}
    for path in sorted(folder.rglob("*.pot")):
        with path.open("rb") as file:
            name = path.relative_to(folder).with_suffix("").as_posix()
            pages[name] = {str(message.id) for message in read_po(file) if message.id}
    return pages


def test_sphinx_finds_the_strings_of_the_lessons(english: dict[str, set[str]]) -> None:
    assert "1. One vector is not enough" in english["lessons/01-one-vector"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_string_is_translated_and_none_is_stale(english: dict[str, set[str]], language: str) -> None:
    problems = []
    for page, strings in english.items():
        path = LOCALES / language / "LC_MESSAGES" / f"{page}.po"
        translations = {}
        if path.exists():
            with path.open("rb") as file:
                catalog = read_po(file)
            translations = {str(one.id): one for one in catalog if one.id}
            problems += [f"{page}: obsolete: {text}" for text in catalog.obsolete]
        problems += [f"{page}: stale: {text}" for text in translations.keys() - strings]
        for text in strings:
            if text not in translations or not translations[text].string or translations[text].fuzzy:
                problems.append(f"{page}: untranslated: {text}")
    assert sorted(problems) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_translations_keep_formulas_code_and_links(language: str) -> None:
    """What is not prose is the same in both: `code`, $formulas$ and the targets of links."""
    import re

    problems = []
    for path in sorted((LOCALES / language).rglob("*.po")):
        with path.open("rb") as file:
            for message in read_po(file):
                if not message.id or not message.string:
                    continue
                for pattern in (r"\{doc\}`[^`<]*<?([/\w-]+)>?`", r"\]\(([^)]+)\)", r"(?<!\\)\$([^$]+)\$"):
                    source, target = (sorted(re.findall(pattern, str(text))) for text in (message.id, message.string))
                    if source != target:
                        problems.append(f"{path.name}: {message.id[:50]!r}: {source} became {target}")
    assert problems == []

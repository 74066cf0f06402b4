"""The page as a file: complete, small, and safe against what tokens contain."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import small_models
from heedful.cli.show import show
from heedful.errors import TraceError
from heedful.trace.schema import Trace
from heedful.viz import page
from heedful.viz.page import page_html, page_link, write_page

MAX_SCRIPT_BYTES = {"page.js": 150_000, "studio.js": 200_000}  # the page's has three languages
MAX_PAGE_BYTES = 300_000  # without the trace


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in of one line for the built page."""
    folder = tmp_path / "built"
    folder.mkdir()
    (folder / "page.js").write_text("start()", encoding="utf-8")
    (folder / "page.css").write_text("p { color: red }", encoding="utf-8")
    monkeypatch.setattr(page, "BUILT", folder)
    return folder


def embedded_trace(text: str) -> Trace:
    match = re.search(r'<script type="application/json" id="trace">(.*?)</script>', text, re.DOTALL)
    assert match
    return Trace.model_validate(json.loads(match[1]))


def test_the_page_contains_the_trace(built: Path) -> None:
    trace = Trace.from_weights(["</script>", "<!--<script>"], ["ß"], [[0.25, 0.75]])
    text = page_html(trace)
    assert embedded_trace(text) == trace
    assert text.count("</script>") == 2
    assert "<!--" not in text


def test_the_content_policy_allows_this_script_and_style_only(built: Path) -> None:
    text = page_html(small_models.small_trace())
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy
    # printf 'start()' | openssl dgst -sha256 -binary | base64
    assert policy[1].split("; ") == [
        "default-src 'none'",
        "script-src 'sha256-DIm7WJS6ZKDYe5qFLPy+h4JFI9Bol5QmYC57mt3Fb00='",
        "style-src 'sha256-ngewhhP73WDIbgwseeu52VAAJgKdGUsu1IUQQsAm8m4='",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_a_page_is_complete_or_absent(built: Path, tmp_path: Path) -> None:
    write_page(small_models.small_trace(), tmp_path / "t.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["built", "t.html"]
    with pytest.raises(TraceError, match="cannot be written"):
        write_page(small_models.small_trace(), tmp_path / "nowhere" / "t.html")


def test_without_a_built_page_the_error_says_how_to_build_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "BUILT", tmp_path)
    with pytest.raises(TraceError, match=r"install Node\.js 18 or newer"):
        page_html(small_models.small_trace())
    assert "install Node.js" in page.notebook_html(small_models.small_trace())


def test_a_script_that_would_end_its_block_is_refused(built: Path) -> None:
    (built / "page.js").write_text("'</script>'", encoding="utf-8")
    with pytest.raises(TraceError, match="cannot be inlined into a page"):
        page_html(small_models.small_trace())


def test_show_writes_a_page_that_opens_the_chosen_view(built: Path, tmp_path: Path) -> None:
    small_models.small_trace().save(tmp_path / "t.json")
    out = tmp_path / "t.html"
    show(tmp_path / "t.json", out, view="lines", site="cross", head=0, subwords=True)
    assert 'data-start="#/alignment?site=cross&amp;head=0&amp;merge=0&amp;specials=1&amp;figure=lines"' in (
        out.read_text(encoding="utf-8")
    )
    show(tmp_path / "t.json", out, view="alignment")
    assert f'data-start="{page_link().replace("&", "&amp;")}"' in out.read_text(encoding="utf-8")
    with pytest.raises(TraceError, match="--view beam is not available as a page"):
        show(tmp_path / "t.json", out, view="beam")
    with pytest.raises(TraceError, match="no head 3"):
        show(tmp_path / "t.json", out, view="alignment", head=3)


def test_a_notebook_shows_the_page_without_an_import(built: Path) -> None:
    shown = small_models.small_trace()._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert 'sandbox="allow-scripts"' in shown
    code = (
        "from heedful.trace.schema import Trace; t = Trace.from_weights(['a'], ['b'], [[1.0]]);"
        " assert t._repr_html_().startswith('<')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_page_is_small() -> None:
    if not (page.BUILT / "page.js").exists():
        pytest.skip("the page is not built")
    for name, most in MAX_SCRIPT_BYTES.items():
        assert (page.BUILT / name).stat().st_size <= most
    trace = Trace.load(Path(__file__).parent / "world.json")
    size = len(page_html(trace).encode()) - len(trace.model_dump_json(by_alias=True, exclude_none=True).encode())
    assert size <= MAX_PAGE_BYTES

"""The page as a file: whole, small, and honest about what is missing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import small
from heedful.cli import show as cli
from heedful.errors import TraceError
from heedful.record import Trace
from heedful.view import page
from heedful.view.page import link, page_html, write_page

LARGEST = 120_000  # bytes of the script
AROUND = 300_000  # bytes of a page beside its trace


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page of one line, for what does not depend on the real one."""
    folder = tmp_path / "built"
    folder.mkdir()
    (folder / "page.js").write_text("start()", encoding="utf-8")
    (folder / "page.css").write_text("p { color: red }", encoding="utf-8")
    monkeypatch.setattr(page, "BUILT", folder)
    return folder


def inside(text: str) -> Trace:
    found = re.search(r'<script type="application/json" id="trace">(.*?)</script>', text, re.DOTALL)
    assert found
    return Trace.model_validate(json.loads(found[1]))


def test_the_whole_trace_is_in_the_page(built: Path) -> None:
    trace = Trace.from_weights(["</script>", "<!--<script>"], ["ß"], [[0.25, 0.75]])
    text = page_html(trace)
    assert inside(text) == trace
    assert text.count("</script>") == 2
    assert "<!--" not in text


def test_only_this_script_and_this_style_may_run(built: Path) -> None:
    text = page_html(small.trace())
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


def test_it_is_written_whole_or_not_at_all(built: Path, tmp_path: Path) -> None:
    write_page(small.trace(), tmp_path / "t.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["built", "t.html"]
    with pytest.raises(TraceError, match="cannot be written"):
        write_page(small.trace(), tmp_path / "nowhere" / "t.html")


def test_without_a_built_page_it_is_said_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "BUILT", tmp_path)
    with pytest.raises(TraceError, match=r"install Node\.js 18 or newer"):
        page_html(small.trace())
    assert "install Node.js" in page.in_notebook(small.trace())


def test_what_would_end_the_block_is_refused(built: Path) -> None:
    (built / "page.js").write_text("'</script>'", encoding="utf-8")
    with pytest.raises(TraceError, match="cannot stand inside a page"):
        page_html(small.trace())


def test_show_makes_a_page_that_starts_where_it_was_told(built: Path, tmp_path: Path) -> None:
    small.trace().save(tmp_path / "t.json")
    out = tmp_path / "t.html"
    cli.run(tmp_path / "t.json", out, cli.Chosen("lines", "cross", 0, False, True))
    assert 'data-start="#/alignment?site=cross&amp;head=0&amp;merge=0&amp;specials=1&amp;figure=lines"' in (
        out.read_text(encoding="utf-8")
    )
    cli.run(tmp_path / "t.json", out, cli.Chosen("alignment", None, None, True, True))
    assert f'data-start="{link().replace("&", "&amp;")}"' in out.read_text(encoding="utf-8")
    with pytest.raises(TraceError, match="the page has no such view"):
        cli.run(tmp_path / "t.json", out, cli.Chosen("beam", None, None, True, True))
    with pytest.raises(TraceError, match="no head 3"):
        cli.run(tmp_path / "t.json", out, cli.Chosen("alignment", None, 3, True, True))


def test_a_notebook_shows_the_page_once_views_are_there(built: Path) -> None:
    shown = small.trace()._repr_html_()
    assert shown is not None
    assert shown.startswith("<iframe srcdoc=")
    assert 'sandbox="allow-scripts"' in shown
    code = (
        "from heedful.record import Trace; t = Trace.from_weights(['a'], ['b'], [[1.0]]);"
        " assert t._repr_html_() is None; import heedful.view; assert t._repr_html_().startswith('<')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_page_is_small() -> None:
    if not (page.BUILT / "page.js").exists():
        pytest.skip("the page is not built")
    assert (page.BUILT / "page.js").stat().st_size <= LARGEST
    trace = Trace.load(Path(__file__).parent / "world.json")
    size = len(page_html(trace).encode()) - len(
        trace.model_dump_json(by_alias=True, exclude_none=True).encode()
    )
    assert size <= AROUND

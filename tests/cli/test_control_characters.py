"""Control characters in words, names and errors are shown, and never reach the terminal."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from command_line import complaint, here
from heedful.cli.console import make_console, safe_streams
from heedful.trace.schema import Trace
from heedful.viz import TextStyle
from heedful.viz.alignment import alignment_text

CLI = Path(__file__).parents[2] / "src" / "heedful" / "cli"
CLIPBOARD = "\x1b]52;c;cm0gLXJm\x07"  # OSC 52: puts text into the clipboard of the person who looks at it
CONTROLS = {chr(c) for c in (*range(0x20), 0x7F, *range(0x80, 0xA0))} - {"\n", "\t"}


def hostile_trace(path: Path) -> Path:
    Trace.from_weights([CLIPBOARD, "\x9b31m"], ["a\x7f", "b\r\n"], np.full((2, 2), 0.5)).save(path)
    return path


def test_words_of_a_trace_are_shown(tmp_path: Path) -> None:
    done = here("show", hostile_trace(tmp_path / "t.json"))
    assert done.returncode == 0
    assert not CONTROLS & set(done.stdout)
    assert "\\u001…" in done.stdout
    assert "b\\u000d\\u000a" in done.stdout, "a label is one line"


def test_views_themselves_show_them(tmp_path: Path) -> None:
    text = alignment_text(Trace.load(hostile_trace(tmp_path / "t.json")), None, TextStyle(40)).plain
    assert not CONTROLS & set(text)


def test_errors_show_file_names_and_options(tmp_path: Path) -> None:
    for words in (["show", tmp_path / f"{CLIPBOARD}.json"], ["show", "t.json", "--view", CLIPBOARD]):
        message = complaint(*words)
        assert "\\u001b]52" in message
        assert not CONTROLS & set(message)


def test_json_means_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    text = "".join(chr(c) for c in range(0x100)) + "\\"
    with safe_streams():
        print(json.dumps(text, ensure_ascii=False))
    printed = capsys.readouterr().out
    assert not CONTROLS & set(printed)
    assert json.loads(printed) == text


def test_a_console_has_colors_of_its_own_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with safe_streams():
        make_console().print(f"{CLIPBOARD}[/bold] :smile:", style="bold")
        sys.stdout.writelines([CLIPBOARD])
    printed = capsys.readouterr().out
    assert printed.startswith("\x1b[1m\\u001b]52")
    assert "[/bold] :smile:" in printed
    assert "\x07" not in printed
    assert printed.count("\x1b") == 2, "bold begins and ends"


def test_every_console_is_a_safe_one() -> None:
    """A console of rich's own would write its colors through the stream that shows them."""
    for path in CLI.glob("*.py"):
        calls = {ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)}
        assert "Console" not in calls, path.name


def test_a_long_message_is_shortened(tmp_path: Path) -> None:
    message = complaint("show", "t.json", "--view", "x" * 100_000)
    assert len(message) < 11_000
    assert "known: alignment" in message
